// A grid of cells in a viewport: the size and position of the cells, and which one is pointed at.
//
// A grid is {rows, cols, cell(r, c) -> id or -1, place(id) -> [r, c], tone(id), text(id) -> lines, chars, lines,
// rowLabel(r), corner, heads: [{span, label(i)}], rowEvery, colEvery, mark(id)}.
const GridView = (() => {
  'use strict';

  const { FONT_SIZE, CHAR_WIDTH, HEAD_HEIGHT } = Paint;
  // Cells too small for text get a height that makes the grid about this high.
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

    // The preferred width of a grid.
    static wish(grid) {
      return 60 + grid.cols * natural(grid)[0];
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

    // Fits the grid again if the width has changed by more than a scroll bar.
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

    // Shows another grid; the zoom is kept if the size of the grid is the same.
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

    // The zoom at which all columns are in sight, and all rows too as long as the text stays easy to read.
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
      // A scroll bar that has appeared takes space away.
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

    // Scrolls to the first of these cells if none is in sight.
    revealOne(cells) {
      const { r0, r1, c0, c1 } = this.sight();
      const seen = (cell) => {
        const [r, c] = this.grid.place(cell);
        return r >= r0 && r < r1 && c >= c0 && c < c1;
      };
      if (cells.length > 0 && !cells.some(seen)) this.reveal(...this.grid.place(cells[0]));
    }

    // Rows and columns in sight.
    sight() {
      const { clientWidth, clientHeight, scrollLeft, scrollTop } = this.viewport;
      return {
        r0: this.row(this.headHeight + scrollTop), r1: this.row(scrollTop + clientHeight) + 1,
        c0: this.column(this.headWidth + scrollLeft), c1: this.column(scrollLeft + clientWidth) + 1,
      };
    }

    draw() {
      if (!this.grid || this.viewport.clientWidth === 0) return;
      Paint.cells(this);
      Paint.marks(this);
    }

    // Highlights cells: `marks` is [{cells, look}], look one of hit, soft, done, wait, cursor. Any look but `cursor`
    // dims the rest.
    light(marks) {
      this.marks = marks.filter((mark) => mark.cells.length > 0);
      if (this.grid && this.viewport.clientWidth > 0) Paint.marks(this);
    }
  }

  function index(distance, size, every, gap, count) {
    const clamp = (value) => Math.min(count - 1, Math.max(0, value));
    if (!every) return clamp(Math.floor(distance / size));
    const block = Math.floor(distance / (every * size + gap));
    const inside = Math.floor((distance - block * (every * size + gap)) / size);
    return clamp(block * every + Math.min(every - 1, inside));
  }

  return GridView;
})();
