// What is wrong with a layout, and what would be `legal`. For a text also the position of the error, from `start` to
// `end` in UTF-16 units, and the `fix`: the nearest text that is a layout, if there is an obvious one.
class LayoutError extends Error {
  // Maximum number of places that are enumerated, as in Rust.
  static MOST_POINTS = 2 ** 22;

  constructor(code, message, details) {
    super(message);
    this.code = code;
    this.problem = message;
    Object.assign(this, details);
  }

  static tooLarge(points) {
    const most = LayoutError.MOST_POINTS;
    return new LayoutError('L0111', `this needs ${points} points, more than the ${most} that may be enumerated`);
  }
}
