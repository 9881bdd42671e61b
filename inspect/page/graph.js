// The graph: boxes inside boxes, drawn as far as they can be read. A module that is small on the screen is its name.
const kinds = { lane: 0, group: 1, item: 2, source: 3, stub: 4 };
const sans = '"Inter", "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif', mono = 'Menlo, Consolas, "DejaVu Sans Mono", monospace';

/// As much of the text as fits.
function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const letters = Math.max(1, Math.floor(text.length * room / context.measureText(text).width) - 1);
  return letters < 2 ? '' : text.slice(0, letters) + '…';
}

/// A scene of the file, with its boxes as objects in a tree.
function readScene(scene) {
  const boxes = scene.boxes.map(([kind, x, y, width, height, parent, lane, id, title, subtitle], index) => ({ index, kind: kinds[kind], x, y, width, height, parent, part: partOrder[lane], id, title, subtitle, children: [], curves: [] }));
  const roots = [];
  for (const box of boxes) box.parent < 0 ? roots.push(box) : boxes[box.parent].children.push(box);
  for (const [from, to, ...points] of scene.curves) if (points.length >= 8) boxes[boxes[from].parent].curves.push({ from, to, points });
  const items = new Map(boxes.filter(box => box.kind === kinds.item).map(box => [box.id, box]));
  return { width: scene.width, height: scene.height, boxes, roots, items };
}

class GraphView {
  /// `what`: "node" or "step": what the items of the scene are.
  constructor(box, scene, what, select) {
    this.scene = readScene(scene);
    this.folding = new Folding(this.scene);
    this.what = what;
    this.selected = new Set(); this.related = new Set(); this.holding = new Set();
    this.mostScale = 3;
    this.label = what === 'node' ? 'graph of nodes' : 'graph of kernels';
    this.select = select;
    this.camera = new Camera(box, this);
    this.camera.setWorld(this.scene.width, this.scene.height, this.left);
  }
  /// Room beside the lanes for their names.
  get left() { return 0.1 * this.scene.width; }
  draw(context, camera) {
    const view = { left: camera.x, top: camera.y, right: camera.x + camera.width / camera.scale, bottom: camera.y + camera.height / camera.scale };
    context.lineJoin = 'round';
    for (const root of this.scene.roots) this.drawBox(context, camera, root, view);
  }
  drawBox(context, camera, box, view) {
    if (box.x > view.right || box.y > view.bottom || box.x + box.width < view.left || box.y + box.height < view.top) return;
    const s = camera.scale, x = camera.toScreenX(box.x), y = camera.toScreenY(box.y), width = box.width * s, height = box.height * s;
    if (box.kind === kinds.lane || box.kind === kinds.group) return this.drawGroup(context, camera, box, view, x, y, width, height);
    const marked = box.kind === kinds.item && this.selected.has(box.id), related = box.kind === kinds.item && this.related.has(box.id), c = colours(box.part);
    context.beginPath();
    if (width < 5) context.rect(x, y, Math.max(1, width), Math.max(1, height));
    else context.roundRect(x, y, width, height, box.kind === kinds.item ? Math.min(5 * s, 6) : height / 2);
    context.fillStyle = box.kind === kinds.item ? c.fill : palette.panel;
    context.fill();
    if (width > 8 || marked || related) {
      context.lineWidth = marked ? 2.5 : related ? 1.75 : 1;
      context.strokeStyle = marked || related ? palette.accent : box.kind === kinds.item ? c.line : palette.line;
      if (box.kind === kinds.stub) context.setLineDash([3, 2]);
      context.stroke();
      context.setLineDash([]);
    }
    if (s * 11 < 5) return;
    const small = box.kind !== kinds.item;
    context.textAlign = 'center'; context.textBaseline = 'alphabetic';
    context.fillStyle = small ? palette.muted : palette.text;
    context.font = `${(small ? 9.5 : 11) * s}px ${sans}`;
    context.fillText(box.title, x + width / 2, y + (box.subtitle ? 15 : box.height / 2 + 4) * s, width - 6 * s);
    if (!box.subtitle) return;
    context.fillStyle = palette.muted;
    context.font = `${9.5 * s}px ${mono}`;
    context.fillText(box.subtitle, x + width / 2, y + 29 * s, width - 6 * s);
  }
  /// A module that is folded, or whose parts cannot be told apart, is a block with its name.
  isFolded(box, camera) {
    const s = camera.scale, width = box.width * s, height = box.height * s;
    if (box.kind === kinds.lane || box.folded) return box.folded;
    return width < 46 || height < 24 || (s < 0.5 && (width < 150 || height < 56)) || (s < 0.16 && width * height < 40000);
  }
  drawGroup(context, camera, box, view, x, y, width, height) {
    const s = camera.scale, lane = box.kind === kinds.lane, c = colours(box.part), folded = this.isFolded(box, camera);
    context.beginPath();
    context.roundRect(x, y, width, height, Math.min(lane ? 12 : 8 * s + 2, width / 4, 10));
    context.fillStyle = lane ? palette.sunk : folded ? c.fill : palette.panel;
    context.globalAlpha = lane || folded ? 1 : 0.72;
    context.fill();
    context.globalAlpha = 1;
    const holds = box.folded && this.holding.has(box);
    if (!lane) { context.lineWidth = holds ? 2 : 1; context.strokeStyle = holds ? palette.accent : folded ? c.line : palette.line; context.stroke(); }
    if (folded) return this.drawName(context, box, c, x, y, width, height);
    if (s > 0.06) for (const curve of box.curves) this.drawCurve(context, camera, curve, s);
    for (const child of box.children) this.drawBox(context, camera, child, view);
    if (lane) return this.drawLaneTitle(context, box, x, y, s);
    const size = Math.max(9.5, Math.min(15, 11 * s)), left = Math.max(x, 0), room = Math.min(x + width, camera.width) - left - 12;
    if (room < 24 || y + 14 * s < 4) return;  // where one is stands above the picture
    context.font = `600 ${size}px ${sans}`;
    context.textAlign = 'left'; context.textBaseline = 'top';
    const text = fitted(context, '▾ ' + box.title, room), top = Math.max(y, 0) + Math.max(1, Math.min(5 * s, 6));
    if (11 * s < 9.5) { context.fillStyle = palette.panel; context.globalAlpha = 0.85; context.fillRect(left + 3, top, context.measureText(text).width + 6, size + 3); context.globalAlpha = 1; }
    context.fillStyle = palette.muted;
    context.fillText(text, left + 6, top + 1);
  }
  drawName(context, box, c, x, y, width, height) {
    const size = Math.min(13, height * 0.55, width / 3.2);
    if (size < 6) return;
    context.font = `${size > 9 ? 600 : 500} ${size}px ${sans}`;
    context.textAlign = 'center'; context.textBaseline = 'middle';
    context.fillStyle = c.ink;
    context.fillText(fitted(context, (box.folded ? '▸ ' : '') + box.title, width - 6), x + width / 2, y + height / 2 + 0.5);
  }
  /// Beside the lane where there is room, else on it.
  drawLaneTitle(context, box, x, y, s) {
    const size = Math.max(12.5, Math.min(18, 36 * s)), title = partNames[box.part] || box.title;
    context.font = `620 ${size}px ${sans}`;
    context.textAlign = 'left'; context.textBaseline = 'top';
    const width = context.measureText(title).width, beside = x - width - 14, left = Math.max(beside, 12), top = Math.max(y, 0) + 7;
    if (left > beside) { context.fillStyle = palette.sunk; context.globalAlpha = 0.9; context.beginPath(); context.roundRect(left - 6, top - 4, width + 12, size + 8, 6); context.fill(); context.globalAlpha = 1; }
    context.fillStyle = colours(box.part).ink;
    context.fillText(title, left, top);
  }
  drawCurve(context, camera, curve, s) {
    const p = curve.points, X = i => camera.toScreenX(p[i]), Y = i => camera.toScreenY(p[i + 1]), n = p.length;
    const ends = [this.scene.boxes[curve.from], this.scene.boxes[curve.to]], hot = ends.some(b => b.kind === kinds.item && this.selected.has(b.id));
    context.beginPath();
    context.moveTo(X(0), Y(0));
    for (let i = 2; i + 5 < n; i += 6) context.bezierCurveTo(X(i), Y(i), X(i + 2), Y(i + 2), X(i + 4), Y(i + 4));
    context.lineWidth = hot ? 1.8 : Math.min(1.2, 0.5 + s);
    context.strokeStyle = hot ? palette.accent : palette.faint;
    context.stroke();
    if (s < 0.45) return;
    const angle = Math.atan2(Y(n - 2) - Y(n - 4), X(n - 2) - X(n - 4)), size = 5.5 * Math.min(s, 1.4), ex = X(n - 2), ey = Y(n - 2);
    context.beginPath();
    context.moveTo(ex, ey);
    context.lineTo(ex - size * Math.cos(angle - 0.42), ey - size * Math.sin(angle - 0.42));
    context.lineTo(ex - size * Math.cos(angle + 0.42), ey - size * Math.sin(angle + 0.42));
    context.fillStyle = hot ? palette.accent : palette.faint;
    context.fill();
  }
  /// The innermost box there that is drawn.
  at(x, y, camera) {
    let found = null, boxes = this.scene.roots;
    for (;;) {
      const next = boxes.find(b => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height);
      if (!next) return found;
      if (next.kind !== kinds.lane) found = next;
      if (this.isFolded(next, camera)) return found;
      boxes = next.children;
    }
  }
  /// Is the place in the line of the module's name, by which it is folded?
  isHeader(box, y) { return y - box.y < Math.min(box.height / 3, Math.max(20, 17 / this.camera.scale)); }
  click(box, x, y) {
    if (!box) return this.select(null);
    if (box.kind === kinds.group && (box.folded || (!this.isFolded(box, this.camera) && this.isHeader(box, y)))) return this.fold([box], !box.folded);
    if (box.kind === kinds.group) return this.open(box);
    if (box.kind === kinds.source) return this.select({ kind: this.what === 'node' ? 'value' : 'buffer', id: box.id });
    this.select({ kind: this.what, id: box.id });
    if (box.kind === kinds.stub) this.reveal([box.id]);
  }
  hover(box, x, y) {
    if (box.kind === kinds.group) return this.pathOf(box).map(b => b.title).join(' / ') + (box.folded ? '\nclick to unfold' : !this.isFolded(box, this.camera) && this.isHeader(box, y) ? '\nclick to fold' : '\nclick to look inside');
    if (box.kind === kinds.item || box.kind === kinds.stub) return this.what === 'node' ? nodeTitle(box.id) : hoverOfStep(box.id);
    return box.title;
  }
  open(box) { this.camera.show(box); }
  /// Folds or unfolds modules; the first one stays where it is on the screen.
  fold(boxes, folded) {
    if (boxes.length === 0) return;
    const from = { x: boxes[0].x, y: boxes[0].y };
    this.folding.set(boxes, folded);
    this.camera.worldMoved(this.scene.width, this.scene.height, this.left, from, boxes[0]);
  }
  /// All outermost modules, or everything that is folded.
  foldAll(folded) {
    this.fold(this.scene.boxes.filter(b => folded ? b.kind === kinds.group && this.scene.boxes[b.parent].kind === kinds.lane : b.folded), folded);
    this.camera.fit(true);
  }
  pathOf(box) {
    const path = [];
    for (let b = box; b; b = this.scene.boxes[b.parent]) path.unshift(b);
    return path;
  }
  /// Marks items without moving.
  mark(selected, related) { this.selected = new Set(selected); this.related = new Set(related); this.holding = new Set(this.itemsOf(selected).flatMap(b => this.pathOf(b))); this.camera.redraw(); }
  itemsOf(ids) { return [...ids].map(id => this.scene.items.get(id)).filter(Boolean); }
  reveal(ids) {
    const boxes = this.itemsOf(ids);
    if (boxes.length === 0) return;
    this.fold([...new Set(boxes.flatMap(b => this.pathOf(b)).filter(b => b.folded))], false);
    const margin = 130, left = Math.min(...boxes.map(b => b.x)) - margin, top = Math.min(...boxes.map(b => b.y)) - margin;
    const right = Math.max(...boxes.map(b => b.x + b.width)) + margin, bottom = Math.max(...boxes.map(b => b.y + b.height)) + margin;
    this.camera.show({ x: left, y: top, width: Math.max(right - left, 700), height: Math.max(bottom - top, 420) });
  }
  /// The boxes around the middle of what is seen that fill most of it: where one is.
  moved(camera) {
    if (!this.onmove) return;
    const [cx, cy] = [camera.x + camera.width / camera.scale / 2, camera.y + camera.height / camera.scale / 2], path = [];
    for (let boxes = this.scene.roots; ;) {
      const next = boxes.find(b => b.kind <= kinds.group && cx >= b.x && cx <= b.x + b.width && cy >= b.y && cy <= b.y + b.height && (b.width * camera.scale > camera.width * 0.45 || b.height * camera.scale > camera.height * 0.45));
      if (!next) break;
      path.push(next);
      if (next.folded) break;
      boxes = next.children;
    }
    this.onmove(path);
  }
}
const hoverOfStep = id => { const step = model.steps[id]; return `step ${id}: ${step.name}\n${opsOf(step)}\n${timeText(model.timeOf(step))}${model.measured ? '' : ' (estimated)'}`; };
