//! Colours of owners: the eight of Okabe and Ito ("Color Universal Design", 2008), which people with any kind of
//! colour vision can tell apart, with grey in place of black; then their tints, then their shades.

/// How many colours there are.
pub(crate) const COLOURS: usize = 24;

const HUES: [[u8; 3]; 8] = [
    [86, 180, 233],
    [230, 159, 0],
    [0, 158, 115],
    [240, 228, 66],
    [204, 121, 167],
    [0, 114, 178],
    [213, 94, 0],
    [153, 153, 153],
];

/// The levels of the 6 x 6 x 6 cube of a terminal's 256 colours.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Red, green and blue of a colour.
pub(crate) fn rgb(colour: usize) -> [u8; 3] {
    let hue = HUES[colour % HUES.len()];
    match colour / HUES.len() % 3 {
        0 => hue,
        1 => mixed(hue, 255, 55),
        _ => mixed(hue, 0, 35),
    }
}

/// `#56B4E9`.
pub(crate) fn hex(colour: usize) -> String {
    let [red, green, blue] = rgb(colour);
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// True where black text has more contrast on the colour than white text.
pub(crate) fn takes_dark_text(colour: usize) -> bool {
    is_light(rgb(colour))
}

/// The escape code for text on the colour, in the nearest of a terminal's 256.
pub(crate) fn ansi(colour: usize) -> String {
    let levels = rgb(colour).map(nearest_level);
    let [red, green, blue] = levels;
    let text = if is_light(levels.map(|level| LEVELS[level])) { 16 } else { 231 };
    format!("48;5;{};38;5;{text}", 16 + 36 * red + 6 * green + blue)
}

fn mixed(colour: [u8; 3], towards: u32, percent: u32) -> [u8; 3] {
    colour.map(|channel| ((u32::from(channel) * (100 - percent) + towards * percent) / 100) as u8)
}

fn nearest_level(channel: u8) -> usize {
    (0..LEVELS.len()).min_by_key(|level| LEVELS[*level].abs_diff(channel)).unwrap_or(0)
}

/// Whether black has more contrast than white, which WCAG 2 puts at a relative luminance of 0.179. Here the squares of
/// the channels approximate sRGB's curve, to avoid floating point; they are higher, so the limit is 0.2.
fn is_light(colour: [u8; 3]) -> bool {
    let squares = colour.map(|channel| u64::from(channel) * u64::from(channel));
    let luminance: u64 = squares.iter().zip([2126, 7152, 722]).map(|(square, weight)| square * weight).sum();
    luminance > 2000 * 255 * 255
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance after WCAG 2.
    fn luminance(colour: [u8; 3]) -> f64 {
        let [red, green, blue] = colour.map(|channel| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn text_has_the_contrast_that_wcag_asks_for() {
        for colour in 0..COLOURS {
            let background = luminance(rgb(colour));
            let text = if takes_dark_text(colour) { 0.0 } else { 1.0 };
            let (high, low) = (f64::max(background, text), f64::min(background, text));
            assert!((high + 0.05) / (low + 0.05) >= 4.5, "{}", hex(colour));
        }
    }

    #[test]
    fn all_colours_differ_in_a_page_and_neighbours_differ_in_a_terminal() {
        let colours: std::collections::BTreeSet<String> = (0..COLOURS).map(hex).collect();
        assert_eq!(colours.len(), COLOURS);
        assert!((1..COLOURS).all(|colour| ansi(colour) != ansi(colour - 1)));
    }

    #[test]
    fn a_terminal_gets_the_nearest_of_its_colours() {
        assert_eq!((hex(0), ansi(0)), ("#56B4E9".to_string(), "48;5;74;38;5;16".to_string()));
    }
}
