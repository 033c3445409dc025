// Draws the grid of a `GridView`: colours, text and heads on one canvas, highlights on another above it. Only the cells
// in sight are drawn, so the cost does not grow with the grid.
const Paint = (() => {
  'use strict';

  const FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
  const FONT_SIZE = 11;
  // The width of a character, in font sizes.
  const CHAR_WIDTH = 0.61;
  const HEAD_HEIGHT = 17;

  // The context of a canvas, cleared, with the scrolled grid's corner as origin.
  function start(view, canvas) {
    const { clientWidth: width, clientHeight: height, scrollLeft, scrollTop } = view.viewport;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      [canvas.width, canvas.height] = [w, h];
      [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.translate(-scrollLeft, -scrollTop);
    return context;
  }

  function clipToCells(view, context) {
    const { clientWidth, clientHeight, scrollLeft, scrollTop } = view.viewport;
    const [x, y] = [scrollLeft + view.headWidth, scrollTop + view.headHeight];
    context.save();
    context.beginPath();
    context.rect(x, y, clientWidth - view.headWidth, clientHeight - view.headHeight);
    context.clip();
  }

  // The cells in sight, with their heads.
  function drawCells(view) {
    const context = start(view, view.base);
    const sight = view.sight();
    clipToCells(view, context);
    drawColours(view, context, sight);
    if (view.width >= 5) drawLines(view, context, sight);
    if (view.showsText()) drawText(view, context, sight);
    context.restore();
    drawHeads(view, context, sight);
  }

  // One pixel a cell on a small canvas, then stretched block by block between the gaps.
  function drawColours(view, context, { r0, r1, c0, c1 }) {
    const { grid, window: small, look } = view;
    const [rows, cols] = [r1 - r0, c1 - c0];
    const image = new ImageData(cols, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let r = r0, at = 0; r < r1; r++) {
      for (let c = c0; c < c1; c++, at++) {
        const id = grid.cell(r, c);
        const tone = id < 0 ? -1 : grid.tone(id);
        if (tone >= 0) pixels[at] = look.palette[tone];
      }
    }
    [small.width, small.height] = [cols, rows];
    small.getContext('2d').putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.fillStyle = look.empty;
    for (const [top, bottom] of blocks(r0, r1, grid.rowEvery)) {
      for (const [left, right] of blocks(c0, c1, grid.colEvery)) {
        const [x, y, w, h] = [view.x(left), view.y(top), (right - left) * view.width, (bottom - top) * view.height];
        context.fillRect(x, y, w, h);
        context.drawImage(small, left - c0, top - r0, right - left, bottom - top, x, y, w, h);
      }
    }
  }

  function drawLines(view, context, { r0, r1, c0, c1 }) {
    context.fillStyle = view.look.panel;
    const [left, right, up, down] = [view.x(c0), view.x(c1), view.y(r0), view.y(r1)];
    for (let c = c0; c <= c1; c++) context.fillRect(Math.round(view.x(c)) - 0.5, up, 1, down - up);
    if (view.height < 5) return;
    for (let r = r0; r <= r1; r++) context.fillRect(left, Math.round(view.y(r)) - 0.5, right - left, 1);
  }

  function drawText(view, context, { r0, r1, c0, c1 }) {
    const { grid, look } = view;
    const size = FONT_SIZE * Math.min(1.2, view.zoom);
    context.font = `${size}px ${FONT}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let r = r0; r < r1; r++) {
      for (let c = c0; c < c1; c++) {
        const id = grid.cell(r, c);
        const lines = id < 0 ? [] : grid.text(id);
        const [x, y] = [view.x(c) + view.width / 2, view.y(r) + view.height / 2 + 0.5];
        lines.forEach((line, i) => {
          context.fillStyle = i === 0 ? look.ink : look.muted;
          context.fillText(line, x, y + (i - (lines.length - 1) / 2) * size * 1.15);
        });
        if (id >= 0 && grid.mark && grid.mark(id)) drawCorner(view, context, r, c);
      }
    }
  }

  // A folded corner: this element has more places than the text shows.
  function drawCorner(view, context, r, c) {
    const [x, y] = [view.x(c) + view.width - 1, view.y(r) + 1];
    context.fillStyle = view.look.accent;
    context.beginPath();
    context.moveTo(x - 6, y);
    context.lineTo(x, y);
    context.lineTo(x, y + 6);
    context.fill();
  }

  function drawHeads(view, context, { r0, r1, c0, c1 }) {
    const { grid, look, viewport } = view;
    const { scrollLeft, scrollTop, clientHeight, clientWidth } = viewport;
    context.fillStyle = look.panel;
    context.fillRect(scrollLeft, scrollTop, clientWidth, view.headHeight);
    context.fillRect(scrollLeft, scrollTop, view.headWidth, clientHeight);
    context.font = `${FONT_SIZE - 0.5}px ${FONT}`;
    context.textBaseline = 'middle';
    context.fillStyle = look.muted;
    drawColumnHeads(view, context, c0, c1);
    drawRowHeads(view, context, r0, r1);
    context.textAlign = 'left';
    if (grid.corner) context.fillText(grid.corner, scrollLeft + 6, scrollTop + view.headHeight - HEAD_HEIGHT / 2 - 2);
  }

  function drawColumnHeads(view, context, c0, c1) {
    const { grid, viewport: { scrollLeft, scrollTop, clientWidth } } = view;
    context.save();
    context.beginPath();
    context.rect(scrollLeft + view.headWidth, scrollTop, clientWidth, view.headHeight);
    context.clip();
    context.textAlign = 'center';
    grid.heads.forEach(({ span, label }, level) => {
      const [first, last] = [Math.floor(c0 / span), Math.ceil(c1 / span)];
      const longest = Math.max(label(first).length, label(Math.max(first, last - 1)).length);
      const room = longest * CHAR_WIDTH * FONT_SIZE + 6;
      const every = powerAbove(room / (span * view.width));
      for (let i = first - (first % every); i < last; i += every) {
        const middle = (view.x(i * span) + view.x(Math.min(grid.cols, (i + 1) * span) - 1) + view.width) / 2;
        const x = i === 0 ? Math.max(middle, view.headWidth + 5) : middle;
        context.fillText(label(i), x, scrollTop + (level + 0.5) * HEAD_HEIGHT + 2);
      }
    });
    context.restore();
  }

  function drawRowHeads(view, context, r0, r1) {
    const { grid, viewport: { scrollLeft, scrollTop, clientHeight } } = view;
    context.save();
    context.beginPath();
    context.rect(scrollLeft, scrollTop + view.headHeight, view.headWidth, clientHeight);
    context.clip();
    context.textAlign = 'right';
    const every = powerAbove(13 / view.height);
    for (let r = r0 - (r0 % every); r < r1; r += every) {
      const middle = view.y(r) + Math.max(view.height, r === 0 ? 12 : 0) / 2;
      context.fillText(grid.rowLabel(r), scrollLeft + view.headWidth - 7, middle + 0.5);
    }
    context.restore();
  }

  // The highlighted cells, over a veil that dims the rest.
  function drawMarks(view) {
    const context = start(view, view.top);
    if (view.marks.length === 0) return;
    clipToCells(view, context);
    const { look } = view;
    if (view.marks.some((mark) => mark.look !== 'cursor')) {
      context.fillStyle = look.veil;
      context.fillRect(view.headWidth, view.headHeight, view.x(view.grid.cols), view.y(view.grid.rows));
    }
    for (const mark of view.marks) drawMark(view, context, mark);
    context.restore();
  }

  function drawMark(view, context, { cells, look: kind }) {
    const { look } = view;
    const styles = {
      hit: { stroke: look.accent, width: 2 },
      soft: {},
      done: { stroke: look.second, width: 1.5 },
      wait: { stroke: look.muted, width: 1 },
      cursor: { keep: true, stroke: look.ink, width: 2 },
    };
    const style = styles[kind];
    const { r0, r1, c0, c1 } = view.sight();
    const roomy = view.width >= 6 && view.height >= 4;
    context.fillStyle = style.stroke || look.accent;
    context.strokeStyle = style.stroke || look.accent;
    context.lineWidth = style.width || 1;
    const inset = context.lineWidth / 2;
    for (const cell of cells) {
      const [r, c] = view.grid.place(cell);
      if (r < r0 || r >= r1 || c < c0 || c >= c1) continue;
      const [x, y, w, h] = [view.x(c), view.y(r), view.width, view.height];
      if (!style.keep) context.clearRect(x, y, w, h);
      if (style.stroke && roomy) context.strokeRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset);
      else if (kind === 'hit' || kind === 'cursor') fillWhole(context, x, y, Math.max(w, 2), Math.max(h, 2));
    }
  }

  // Whole pixels, so that neighbours leave no seam.
  function fillWhole(context, x, y, w, h) {
    const [left, top] = [Math.floor(x), Math.floor(y)];
    context.fillRect(left, top, Math.ceil(x + w) - left, Math.ceil(y + h) - top);
  }

  // The least power of two that is not below `value`.
  function powerAbove(value) {
    let power = 1;
    while (power < value) power *= 2;
    return power;
  }

  // `from..to` cut at multiples of `every`.
  function* blocks(from, to, every) {
    if (!every) {
      yield [from, to];
      return;
    }
    for (let at = from; at < to;) {
      const end = Math.min(to, (Math.floor(at / every) + 1) * every);
      yield [at, end];
      at = end;
    }
  }

  return { FONT_SIZE, CHAR_WIDTH, HEAD_HEIGHT, cells: drawCells, marks: drawMarks };
})();
