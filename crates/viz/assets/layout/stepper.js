// The control that steps through a sequence: buttons, a slider, and a timer for play.
class Stepper {
  // `root` holds the buttons; `show(n)` is called for every step that is reached.
  constructor(root, show) {
    this.root = root;
    this.show = show;
    this.part = (id) => root.querySelector(`#${id}`);
    this.count = 0;
    this.at = 0;
    this.clock = null;
    const moves = { first: () => -Infinity, previous: () => -1, next: () => 1 };
    for (const [id, move] of Object.entries(moves)) {
      this.part(id).addEventListener('click', () => this.user(this.at + move()));
    }
    this.part('play').addEventListener('click', () => (this.clock === null ? this.play() : this.pause()));
    this.part('seek').addEventListener('input', (event) => this.user(Number(event.target.value)));
  }

  // A new sequence of `count` steps, at step `at`.
  reset(count, at = 0) {
    this.pause();
    this.count = count;
    this.root.querySelector('.player').hidden = count === 0;
    this.go(at);
  }

  user(at) {
    this.pause();
    this.go(at);
  }

  go(at) {
    this.at = Math.max(0, Math.min(this.count - 1, at));
    this.part('seek').max = Math.max(0, this.count - 1);
    this.part('seek').value = this.at;
    this.part('count').textContent = this.count > 0 ? `${this.at + 1} of ${this.count}` : '';
    this.part('first').disabled = this.part('previous').disabled = this.at === 0;
    this.part('next').disabled = this.at >= this.count - 1;
    if (this.count > 0) this.show(this.at);
  }

  play() {
    if (this.at >= this.count - 1) this.go(0);
    this.clock = setInterval(() => {
      this.go(this.at + 1);
      if (this.at >= this.count - 1) this.pause();
    }, 650);
    this.part('play').textContent = 'Pause';
  }

  pause() {
    if (this.clock !== null) clearInterval(this.clock);
    this.clock = null;
    this.part('play').textContent = 'Play';
  }
}
