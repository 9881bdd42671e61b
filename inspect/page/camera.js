// A canvas that is looked at through a camera: wheel and pinch zoom, dragging moves. Only what asks for it is drawn, once a frame.
class Camera {
  /// view: { draw(context, camera), at(x, y) -> thing or null, click(thing, x, y), hover(thing, x, y) -> text or null, horizontal: zoom along x alone }
  constructor(box, view) {
    this.view = view;
    this.canvas = el('canvas', { tabindex: '0', 'aria-label': view.label || 'picture' });
    this.tip = el('div', { class: 'tip' });
    this.tip.hidden = true;
    box.append(this.canvas, this.tip);
    this.x = 0; this.y = 0; this.scale = 1; this.scaleY = 1;
    this.world = { width: 1, height: 1, left: 0 };
    this.frame = 0;
    new ResizeObserver(() => this.resize()).observe(box);
    this.canvas.addEventListener('wheel', e => this.wheel(e), { passive: false });
    this.canvas.addEventListener('pointerdown', e => this.down(e));
    this.canvas.addEventListener('pointermove', e => this.move(e));
    this.canvas.addEventListener('pointerup', e => this.up(e));
    this.canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.canvas.addEventListener('keydown', e => this.key(e));
  }
  get width() { return this.canvas.clientWidth; }
  get height() { return this.canvas.clientHeight; }

  resize() {
    const ratio = window.devicePixelRatio || 1, width = this.width, height = this.height;
    if (width === 0 || height === 0) return;
    this.canvas.width = width * ratio; this.canvas.height = height * ratio;
    if (!this.placed) { this.placed = true; this.fit(); }
    else if (this.fits) this.fit();  // who sees all goes on seeing all
    this.redraw();
  }
  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const ratio = window.devicePixelRatio || 1, context = this.canvas.getContext('2d');
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      this.view.draw(context, this);
    });
  }
  toScreenX(x) { return (x - this.x) * this.scale; }
  toScreenY(y) { return (y - this.y) * (this.view.horizontal ? this.scaleY : this.scale); }
  toWorld(px, py) { return [px / this.scale + this.x, py / (this.view.horizontal ? this.scaleY : this.scale) + this.y]; }

  /// `left`: what is kept free beside it.
  setWorld(width, height, left = 0) { this.world = { width, height, left }; if (this.placed) this.fit(); }
  /// What is seen changed its size; the world's place `from` is now `to`, and stays where it is on the screen.
  worldMoved(width, height, left, from, to) {
    this.world = { width, height, left };
    this.fits = false;
    this.x += to.x - from.x; this.y += to.y - from.y;
    this.redraw(); this.changed();
  }
  fit(animate = false) { this.show({ x: -this.world.left, y: 0, width: this.world.width + this.world.left, height: this.world.height }, animate, true); }
  /// Moves so that the rectangle fills the canvas.
  show(r, animate = true, fits = false) {
    this.fits = fits;
    const margin = this.view.horizontal ? 1 : 0.94;
    const scale = Math.min(this.view.mostScale || 1e9, margin * (this.view.horizontal ? this.width / Math.max(r.width, 1e-9) : Math.min(this.width / r.width, this.height / r.height)));
    const target = { scale, x: r.x + r.width / 2 - this.width / 2 / scale, y: this.view.horizontal ? 0 : r.y + r.height / 2 - this.height / 2 / scale };
    if (this.view.horizontal) this.scaleY = this.height / Math.max(this.world.height, 1e-9);
    const calm = !animate || !this.placed || matchMedia('(prefers-reduced-motion: reduce)').matches;
    if (calm) { Object.assign(this, target); this.redraw(); this.changed(); return; }
    const from = { scale: this.scale, cx: this.x + this.width / 2 / this.scale, cy: this.y + this.height / 2 / this.scale }, cx = r.x + r.width / 2, cy = r.y + r.height / 2, begin = performance.now();
    const step = now => {
      const t = Math.min(1, (now - begin) / 320), e = t < 0.5 ? 4 * t * t * t : 1 - Math.pow(2 - 2 * t, 3) / 2;
      this.scale = Math.exp(Math.log(from.scale) * (1 - e) + Math.log(scale) * e);
      this.x = from.cx * (1 - e) + cx * e - this.width / 2 / this.scale;
      this.y = this.view.horizontal ? 0 : from.cy * (1 - e) + cy * e - this.height / 2 / this.scale;
      this.redraw();
      if (t < 1) requestAnimationFrame(step); else this.changed();
    };
    requestAnimationFrame(step);
  }
  changed() { if (this.view.moved) this.view.moved(this); }
  zoom(factor, px, py) {
    this.fits = false;
    const [wx, wy] = this.toWorld(px, py), least = 0.5 * Math.min(this.width / this.world.width, this.view.horizontal ? Infinity : this.height / this.world.height);
    this.scale = Math.max(least, Math.min(this.view.mostScale || 1e9, this.scale * factor));
    this.x = wx - px / this.scale;
    if (!this.view.horizontal) this.y = wy - py / this.scale;
    this.redraw(); this.changed();
  }
  pan(dx, dy) {
    this.fits = false;
    this.x -= dx / this.scale;
    if (!this.view.horizontal) this.y -= dy / this.scale;
    this.redraw(); this.changed();
  }
  wheel(e) {
    e.preventDefault();
    if (e.shiftKey) return this.pan(-e.deltaY - e.deltaX, 0);
    this.zoom(Math.exp(-(e.deltaMode === 1 ? 20 : 1) * e.deltaY * (e.ctrlKey ? 0.01 : 0.0016)), e.offsetX, e.offsetY);
  }
  down(e) { this.canvas.setPointerCapture(e.pointerId); this.drag = { x: e.clientX, y: e.clientY, moved: false }; }
  move(e) {
    if (this.drag && e.buttons) {
      const dx = e.clientX - this.drag.x, dy = e.clientY - this.drag.y;
      if (!this.drag.moved && Math.hypot(dx, dy) < 4) return;
      this.drag = { x: e.clientX, y: e.clientY, moved: true };
      this.canvas.classList.add('moving'); this.tip.hidden = true;
      return this.pan(dx, dy);
    }
    const [x, y] = this.toWorld(e.offsetX, e.offsetY), thing = this.view.at(x, y, this), text = thing !== null && this.view.hover ? this.view.hover(thing, x, y) : null;
    this.canvas.classList.toggle('over', thing !== null);
    this.tip.hidden = !text;
    if (!text) return;
    this.tip.textContent = text;
    this.tip.style.left = Math.max(0, Math.min(e.offsetX + 14, this.width - this.tip.offsetWidth - 8)) + 'px';
    this.tip.style.top = Math.min(e.offsetY + 16, this.height - this.tip.offsetHeight - 8) + 'px';
  }
  up(e) {
    const click = this.drag && !this.drag.moved;
    this.drag = null;
    this.canvas.classList.remove('moving');
    if (!click) return;
    this.tip.hidden = true;  // it may be something else that is there then
    const [x, y] = this.toWorld(e.offsetX, e.offsetY);
    this.view.click(this.view.at(x, y, this), x, y);
  }
  key(e) {
    const far = 80, keys = { ArrowLeft: () => this.pan(far, 0), ArrowRight: () => this.pan(-far, 0), ArrowUp: () => this.pan(0, far), ArrowDown: () => this.pan(0, -far), '+': () => this.zoom(1.3, this.width / 2, this.height / 2), '-': () => this.zoom(1 / 1.3, this.width / 2, this.height / 2), '0': () => this.fit() };
    if (!keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  }
}

let palette = {};
function readPalette() {
  const style = getComputedStyle(document.documentElement), read = name => style.getPropertyValue('--' + name).trim();
  palette = { bg: read('bg'), panel: read('panel'), sunk: read('sunk'), line: read('line'), text: read('text'), muted: read('muted'), faint: read('faint'), accent: read('accent'), parts: {} };
  for (const part of [...partOrder, 'other']) palette.parts[part] = { fill: read(part), line: read(part + '-line'), ink: read(part + '-ink') };
}
const colours = part => palette.parts[part] || palette.parts.other;
