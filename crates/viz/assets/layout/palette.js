// Colours: the tones of cells, of equal lightness for every hue, and those that the style sheet defines for the theme.
const Palette = (() => {
  'use strict';

  const HUES = 24;
  const LEVELS = 4;

  function channel(value) {
    const clipped = Math.min(1, Math.max(0, value));
    const gamma = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
    return Math.round(255 * gamma);
  }

  // OKLCH (lightness, chroma, hue in degrees) as one little-endian RGBA word.
  function oklch(lightness, chroma, hue) {
    const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)];
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const red = channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
    const green = channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
    const blue = channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s);
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }

  // Colours of the tones `hue * LEVELS + level`.
  function palette(dark) {
    const colours = new Uint32Array(HUES * LEVELS);
    for (let tone = 0; tone < colours.length; tone++) {
      const [hue, level] = [Math.floor(tone / LEVELS) * (360 / HUES) + 20, tone % LEVELS];
      colours[tone] = dark
        ? oklch(0.48 - 0.045 * level, 0.078, hue)
        : oklch(0.925 - 0.04 * level, 0.048 + 0.014 * level, hue);
    }
    return colours;
  }

  // The colours of the page that the style sheet defines for the current theme.
  function theme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const dark = colour('scheme') === 'dark';
    const names = ['panel', 'empty', 'ink', 'muted', 'line', 'accent', 'second', 'veil'];
    return { dark, palette: palette(dark), ...Object.fromEntries(names.map((name) => [name, colour(name)])) };
  }

  return { theme, HUES, LEVELS };
})();
