// A grid of cells on a canvas: colours, text and headers below, what is lit above. Only the cells in sight are drawn,
// so its cost does not grow with the grid.
//
// A grid is {rows, cols, cell(r, c) -> id or -1, place(id) -> [r, c], tone(id), text(id) -> lines, chars, lines,
// rowLabel(r), corner, heads: [{span, label(i)}], rowEvery, colEvery, mark(id)}.
const Draw = (() => {
  'use strict';

  const FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
  const FONT_SIZE = 11;
  const CHAR_WIDTH = 0.61;
  const HEAD_HEIGHT = 17;
  // Cells too small for text are as high as fills about this much.
  const OVERVIEW_HEIGHT = 440;
  // Browsers lose precision in taller or wider boxes.
  const LONGEST = 3e7;
  const ZOOM = { least: 0.005, text: 0.72, shown: 0.86, most: 2.2 };
  const LEAST_WIDTH = 0.25;
  const SCROLL_BAR = 24;

  function element(tag, className, parent) {
    const made = document.createElement(tag);
    made.className = className;
    if (parent) parent.append(made);
    return made;
  }

  // Width and height of a cell when text has its natural size.
  function natural({ chars, lines }) {
    return [Math.max(26, chars * CHAR_WIDTH * FONT_SIZE + 8), Math.max(22, lines * 13 + 8)];
  }

  // How wide a grid would like to be.
  function wish(grid) {
    return 60 + grid.cols * natural(grid)[0];
  }

  class GridView {
    // `handlers`: point(hit) on hover and keys, pick(hit) on click and Enter, leave().
    constructor(viewport, handlers) {
      this.viewport = viewport;
      this.handlers = handlers;
      this.sizer = element('div', 'sizer', viewport);
      const stick = element('div', 'stick', this.sizer);
      this.base = element('canvas', 'base', stick);
      this.top = element('canvas', 'top', stick);
      this.window = document.createElement('canvas');
      this.marks = [];
      this.cursor = null;
      this.zoom = null;
      this.listen();
    }

    listen() {
      const hit = (event) => this.hit(event.offsetX, event.offsetY);
      this.top.addEventListener('pointermove', (event) => this.handlers.point(hit(event)));
      this.top.addEventListener('pointerleave', () => this.handlers.leave());
      this.top.addEventListener('click', (event) => this.handlers.pick(hit(event)));
      this.viewport.addEventListener('scroll', () => this.draw());
      this.viewport.addEventListener('keydown', (event) => this.key(event));
      this.viewport.addEventListener('blur', () => this.handlers.leave());
      this.viewport.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
      new ResizeObserver(() => this.resized()).observe(this.viewport);
    }

    // Fits anew where the width has changed by more than a scroll bar.
    resized() {
      if (!this.grid) return;
      const changed = Math.abs(this.viewport.clientWidth - this.measuredWidth) > SCROLL_BAR;
      if (changed && this.zoom === this.fit) this.measure();
      this.draw();
    }

    wheel(event) {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1.15 : 1 / 1.15);
    }

    // Shows another grid; the zoom stays where the grid keeps its size.
    show(grid, look) {
      const old = this.grid;
      const same = old && ['rows', 'cols', 'chars', 'lines'].every((key) => old[key] === grid[key]);
      this.grid = grid;
      this.look = look;
      if (!same) {
        this.zoom = null;
        this.cursor = null;
        this.viewport.scrollTo(0, 0);
      }
      this.measure();
      this.draw();
    }

    // The zoom at which all columns are in sight, and all rows too where text stays easy to read.
    fitting() {
      const { cols, rows, colEvery, rowEvery } = this.grid;
      const [width, height] = natural(this.grid);
      const gaps = (count, every) => (every ? Math.ceil(count / every) * 3 : 0);
      const across = (this.viewport.clientWidth - this.headWidth - 4 - gaps(cols, colEvery)) / (cols * width);
      const most = parseFloat(getComputedStyle(this.viewport).maxHeight) || Infinity;
      const down = (most - this.headHeight - 4 - gaps(rows, rowEvery)) / (rows * height);
      return Math.max(ZOOM.least, Math.min(1.25, across, Math.max(ZOOM.shown, down)));
    }

    measure() {
      const { grid } = this;
      const labels = [grid.corner || '', ...[0, grid.rows - 1, grid.rows >> 1].map((r) => grid.rowLabel(r))];
      this.headWidth = Math.max(...labels.map((label) => label.length)) * CHAR_WIDTH * FONT_SIZE + 14;
      this.headHeight = grid.heads.length * HEAD_HEIGHT + 4;
      this.measuredWidth = this.viewport.clientWidth;
      const fitted = this.zoom === null || this.zoom === this.fit;
      this.setSizes();
      // A scroll bar that has come takes room away.
      if (fitted && this.fitting() !== this.fit) this.setSizes();
    }

    setSizes() {
      const { grid } = this;
      if (this.zoom === null || this.zoom === this.fit) {
        const wanted = this.zoom !== null;
        this.fit = this.fitting();
        this.zoom = wanted || this.fit >= ZOOM.text ? this.fit : ZOOM.shown;
      }
      const [width, height] = natural(grid);
      this.width = Math.min(Math.max(LEAST_WIDTH, width * this.zoom), LONGEST / grid.cols);
      const squat = Math.min(14, Math.max(height * this.zoom, 3, OVERVIEW_HEIGHT / grid.rows));
      this.height = Math.min(this.showsText() ? height * this.zoom : squat, LONGEST / grid.rows);
      this.gap = this.width >= 9 ? 3 : this.width >= 3 ? 1 : 0;
      this.sizer.style.width = `${this.x(grid.cols) + 1}px`;
      this.sizer.style.height = `${this.y(grid.rows) + 1}px`;
    }

    showsText() {
      return this.zoom >= ZOOM.text;
    }

    zoomBy(factor) {
      this.zoom = Math.min(ZOOM.most, Math.max(ZOOM.least, this.zoom * factor));
      this.measure();
      this.draw();
    }

    zoomToFit() {
      this.zoom = this.fit = this.fitting();
      this.measure();
      this.draw();
    }

    // The left edge of column `c` and the upper edge of row `r`, from the corner of the whole grid.
    x(c) {
      const { colEvery } = this.grid;
      return this.headWidth + c * this.width + (colEvery ? Math.floor(c / colEvery) * this.gap : 0);
    }

    y(r) {
      const { rowEvery } = this.grid;
      return this.headHeight + r * this.height + (rowEvery ? Math.floor(r / rowEvery) * this.gap : 0);
    }

    column(x) {
      return index(x - this.headWidth, this.width, this.grid.colEvery, this.gap, this.grid.cols);
    }

    row(y) {
      return index(y - this.headHeight, this.height, this.grid.rowEvery, this.gap, this.grid.rows);
    }

    // What is under a point of the canvas: a cell, the head of a row or a column, or null.
    hit(canvasX, canvasY) {
      const { grid, viewport } = this;
      if (!grid) return null;
      const [x, y] = [canvasX + viewport.scrollLeft, canvasY + viewport.scrollTop];
      const [c, r] = [this.column(x), this.row(y)];
      const [inHead, inSide] = [canvasY < this.headHeight, canvasX < this.headWidth];
      if (inHead && inSide) return null;
      if (inHead) return x < this.x(grid.cols) ? { kind: 'column', index: c } : null;
      if (inSide) return y < this.y(grid.rows) ? { kind: 'row', index: r } : null;
      if (x >= this.x(grid.cols) || y >= this.y(grid.rows)) return null;
      return { kind: 'cell', row: r, column: c, cell: grid.cell(r, c) };
    }

    key(event) {
      const steps = {
        ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
        PageUp: [-8, 0], PageDown: [8, 0], Home: [0, -Infinity], End: [0, Infinity],
      };
      const { grid } = this;
      if (!grid || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        if (this.cursor) this.handlers.pick(this.cellAt(...this.cursor));
      } else if (event.key in steps) {
        event.preventDefault();
        const [down, right] = steps[event.key];
        const [r, c] = this.cursor || [0, 0];
        const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
        this.cursor = this.cursor ? [clamp(r + down, grid.rows), clamp(c + right, grid.cols)] : [r, c];
        this.reveal(...this.cursor);
        this.handlers.point(this.cellAt(...this.cursor));
      }
    }

    cellAt(r, c) {
      return { kind: 'cell', row: r, column: c, cell: this.grid.cell(r, c) };
    }

    reveal(r, c) {
      const { viewport } = this;
      const [left, right, up, down] = [this.x(c), this.x(c + 1), this.y(r), this.y(r + 1)];
      if (left - this.headWidth < viewport.scrollLeft) viewport.scrollLeft = left - this.headWidth;
      else if (right > viewport.scrollLeft + viewport.clientWidth) viewport.scrollLeft = right - viewport.clientWidth;
      if (up - this.headHeight < viewport.scrollTop) viewport.scrollTop = up - this.headHeight;
      else if (down > viewport.scrollTop + viewport.clientHeight) viewport.scrollTop = down - viewport.clientHeight;
    }

    // Moves the mouse over a cell, a row's head (column -1) or a column's head (row -1), and clicks if asked to.
    pointer(r, c, click) {
      if (r >= 0 && c >= 0) this.reveal(r, c);
      const box = this.top.getBoundingClientRect();
      const x = c < 0 ? this.headWidth / 2 : this.x(c) + this.width / 2 - this.viewport.scrollLeft;
      const y = r < 0 ? this.headHeight / 2 : this.y(r) + this.height / 2 - this.viewport.scrollTop;
      const where = { clientX: box.left + x, clientY: box.top + y, bubbles: true };
      this.top.dispatchEvent(new PointerEvent('pointermove', where));
      if (click) this.top.dispatchEvent(new PointerEvent('click', where));
    }

    // Scrolls to the first of these cells where none is in sight.
    revealOne(cells) {
      const { r0, r1, c0, c1 } = this.sight();
      const seen = (cell) => {
        const [r, c] = this.grid.place(cell);
        return r >= r0 && r < r1 && c >= c0 && c < c1;
      };
      if (cells.length > 0 && !cells.some(seen)) this.reveal(...this.grid.place(cells[0]));
    }

    // The context of a canvas, cleared, with the scrolled grid's corner as origin.
    start(canvas) {
      const { clientWidth: width, clientHeight: height, scrollLeft, scrollTop } = this.viewport;
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

    // Rows and columns in sight.
    sight() {
      const { clientWidth, clientHeight, scrollLeft, scrollTop } = this.viewport;
      return {
        r0: this.row(this.headHeight + scrollTop), r1: this.row(scrollTop + clientHeight) + 1,
        c0: this.column(this.headWidth + scrollLeft), c1: this.column(scrollLeft + clientWidth) + 1,
      };
    }

    clipToCells(context) {
      const { clientWidth, clientHeight, scrollLeft, scrollTop } = this.viewport;
      const [x, y] = [scrollLeft + this.headWidth, scrollTop + this.headHeight];
      context.save();
      context.beginPath();
      context.rect(x, y, clientWidth - this.headWidth, clientHeight - this.headHeight);
      context.clip();
    }

    draw() {
      if (!this.grid || this.viewport.clientWidth === 0) return;
      const context = this.start(this.base);
      const sight = this.sight();
      this.clipToCells(context);
      this.drawColours(context, sight);
      if (this.width >= 5) this.drawLines(context, sight);
      if (this.showsText()) this.drawText(context, sight);
      context.restore();
      this.drawHeads(context, sight);
      this.drawMarks();
    }

    // One pixel a cell on a small canvas, then stretched block by block between the gaps.
    drawColours(context, { r0, r1, c0, c1 }) {
      const { grid, window: small, look } = this;
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
          const [x, y, w, h] = [this.x(left), this.y(top), (right - left) * this.width, (bottom - top) * this.height];
          context.fillRect(x, y, w, h);
          context.drawImage(small, left - c0, top - r0, right - left, bottom - top, x, y, w, h);
        }
      }
    }

    drawLines(context, { r0, r1, c0, c1 }) {
      context.fillStyle = this.look.panel;
      const [left, right, up, down] = [this.x(c0), this.x(c1), this.y(r0), this.y(r1)];
      for (let c = c0; c <= c1; c++) context.fillRect(Math.round(this.x(c)) - 0.5, up, 1, down - up);
      if (this.height < 5) return;
      for (let r = r0; r <= r1; r++) context.fillRect(left, Math.round(this.y(r)) - 0.5, right - left, 1);
    }

    drawText(context, { r0, r1, c0, c1 }) {
      const { grid, look } = this;
      const size = FONT_SIZE * Math.min(1.2, this.zoom);
      context.font = `${size}px ${FONT}`;
      context.textAlign = 'center';
      context.textBaseline = 'middle';
      for (let r = r0; r < r1; r++) {
        for (let c = c0; c < c1; c++) {
          const id = grid.cell(r, c);
          const lines = id < 0 ? [] : grid.text(id);
          const [x, y] = [this.x(c) + this.width / 2, this.y(r) + this.height / 2 + 0.5];
          lines.forEach((line, i) => {
            context.fillStyle = i === 0 ? look.ink : look.muted;
            context.fillText(line, x, y + (i - (lines.length - 1) / 2) * size * 1.15);
          });
          if (id >= 0 && grid.mark && grid.mark(id)) this.drawCorner(context, r, c);
        }
      }
    }

    // A folded corner: this element has more places than the text tells.
    drawCorner(context, r, c) {
      const [x, y] = [this.x(c) + this.width - 1, this.y(r) + 1];
      context.fillStyle = this.look.accent;
      context.beginPath();
      context.moveTo(x - 6, y);
      context.lineTo(x, y);
      context.lineTo(x, y + 6);
      context.fill();
    }

    drawHeads(context, { r0, r1, c0, c1 }) {
      const { grid, look, viewport } = this;
      const { scrollLeft, scrollTop, clientHeight, clientWidth } = viewport;
      context.fillStyle = look.panel;
      context.fillRect(scrollLeft, scrollTop, clientWidth, this.headHeight);
      context.fillRect(scrollLeft, scrollTop, this.headWidth, clientHeight);
      context.font = `${FONT_SIZE - 0.5}px ${FONT}`;
      context.textBaseline = 'middle';
      context.fillStyle = look.muted;
      this.drawColumnHeads(context, c0, c1);
      this.drawRowHeads(context, r0, r1);
      context.textAlign = 'left';
      if (grid.corner) context.fillText(grid.corner, scrollLeft + 6, scrollTop + this.headHeight - HEAD_HEIGHT / 2 - 2);
    }

    drawColumnHeads(context, c0, c1) {
      const { grid, viewport: { scrollLeft, scrollTop, clientWidth } } = this;
      context.save();
      context.beginPath();
      context.rect(scrollLeft + this.headWidth, scrollTop, clientWidth, this.headHeight);
      context.clip();
      context.textAlign = 'center';
      grid.heads.forEach(({ span, label }, level) => {
        const [first, last] = [Math.floor(c0 / span), Math.ceil(c1 / span)];
        const longest = Math.max(label(first).length, label(Math.max(first, last - 1)).length);
        const room = longest * CHAR_WIDTH * FONT_SIZE + 6;
        const every = powerAbove(room / (span * this.width));
        for (let i = first - (first % every); i < last; i += every) {
          const middle = (this.x(i * span) + this.x(Math.min(grid.cols, (i + 1) * span) - 1) + this.width) / 2;
          const x = i === 0 ? Math.max(middle, this.headWidth + 5) : middle;
          context.fillText(label(i), x, scrollTop + (level + 0.5) * HEAD_HEIGHT + 2);
        }
      });
      context.restore();
    }

    drawRowHeads(context, r0, r1) {
      const { grid, viewport: { scrollLeft, scrollTop, clientHeight } } = this;
      context.save();
      context.beginPath();
      context.rect(scrollLeft, scrollTop + this.headHeight, this.headWidth, clientHeight);
      context.clip();
      context.textAlign = 'right';
      const every = powerAbove(13 / this.height);
      for (let r = r0 - (r0 % every); r < r1; r += every) {
        const middle = this.y(r) + Math.max(this.height, r === 0 ? 12 : 0) / 2;
        context.fillText(grid.rowLabel(r), scrollLeft + this.headWidth - 7, middle + 0.5);
      }
      context.restore();
    }

    // Lights cells: `marks` is [{cells, look}], look one of hit, soft, done, wait, cursor. All but `wait` and `cursor`
    // dim the rest.
    light(marks) {
      this.marks = marks.filter((mark) => mark.cells.length > 0);
      this.drawMarks();
    }

    drawMarks() {
      if (!this.grid || this.viewport.clientWidth === 0) return;
      const context = this.start(this.top);
      if (this.marks.length === 0) return;
      this.clipToCells(context);
      const { look } = this;
      if (this.marks.some((mark) => mark.look !== 'cursor')) {
        context.fillStyle = look.veil;
        context.fillRect(this.headWidth, this.headHeight, this.x(this.grid.cols), this.y(this.grid.rows));
      }
      for (const mark of this.marks) this.drawMark(context, mark);
      context.restore();
    }

    drawMark(context, { cells, look: kind }) {
      const { look } = this;
      const styles = {
        hit: { stroke: look.accent, width: 2 },
        soft: {},
        done: { stroke: look.second, width: 1.5 },
        wait: { stroke: look.muted, width: 1 },
        cursor: { keep: true, stroke: look.ink, width: 2 },
      };
      const style = styles[kind];
      const { r0, r1, c0, c1 } = this.sight();
      const roomy = this.width >= 6 && this.height >= 4;
      context.fillStyle = style.stroke || look.accent;
      context.strokeStyle = style.stroke || look.accent;
      context.lineWidth = style.width || 1;
      const inset = context.lineWidth / 2;
      for (const cell of cells) {
        const [r, c] = this.grid.place(cell);
        if (r < r0 || r >= r1 || c < c0 || c >= c1) continue;
        const [x, y, w, h] = [this.x(c), this.y(r), this.width, this.height];
        if (!style.keep) context.clearRect(x, y, w, h);
        if (style.stroke && roomy) context.strokeRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset);
        else if (kind === 'hit' || kind === 'cursor') fillWhole(context, x, y, Math.max(w, 2), Math.max(h, 2));
      }
    }
  }

  function index(distance, size, every, gap, count) {
    const clamp = (value) => Math.min(count - 1, Math.max(0, value));
    if (!every) return clamp(Math.floor(distance / size));
    const block = Math.floor(distance / (every * size + gap));
    const inside = Math.floor((distance - block * (every * size + gap)) / size);
    return clamp(block * every + Math.min(every - 1, inside));
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

  return { GridView, wish };
})();
