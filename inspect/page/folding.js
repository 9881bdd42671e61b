// Modules fold in place: one that is folded is a small box with its name, and what lies around it moves together. Graphviz has placed everything when the page was made. Here only room is given back that
// nobody needs: along each axis what lies beside folded modules alone shrinks, all else keeps its size, and nothing changes sides.
const foldedHeight = 34, foldedLetter = 9, fewestLetters = 8, foldedMargin = 44, lanePadding = 20;

/// `scene` as readScene() gives it.
class Folding {
  constructor(scene) {
    this.scene = scene;
    for (const box of scene.boxes) {
      const around = scene.boxes[box.parent];
      box.folded = false;
      box.home = { x: box.x, y: box.y, left: around ? box.x - around.x : box.x, top: around ? box.y - around.y : box.y, width: box.width, height: box.height };
      for (const curve of box.curves) curve.home = curve.points;
    }
    this.home = { width: scene.width, height: scene.height };
  }
  /// Folds or unfolds these, and moves everything to where it lies then.
  set(boxes, folded) {
    for (const box of boxes) box.folded = folded;
    if (this.scene.boxes.some(box => box.folded)) this.place(); else this.restore();
  }
  /// As Graphviz placed it.
  restore() {
    for (const box of this.scene.boxes) {
      Object.assign(box, { x: box.home.x, y: box.home.y, width: box.home.width, height: box.home.height });
      for (const curve of box.curves) curve.points = curve.home;
    }
    Object.assign(this.scene, this.home);
  }
  place() {
    let y = 0, end = 0;
    for (const lane of this.scene.roots) {
      const size = this.sizeOf(lane);
      y += lane.home.y - end;
      end = lane.home.y + lane.home.height;
      this.putAt(lane, { x: 0, y, width: Math.max(0, ...lane.children.map(child => lane.mapX(child.home.left + child.home.width))) + lanePadding, height: size.height });
      y += size.height;
    }
    this.scene.height = y;
    this.scene.width = Math.max(...this.scene.roots.map(lane => lane.width));
    for (const lane of this.scene.roots) lane.width = this.scene.width;
  }
  /// How large it is with what is folded in it; how its insides move.
  sizeOf(box) {
    if (box.folded) return { width: Math.min(box.home.width, foldedLetter * Math.max(box.title.length, fewestLetters) + foldedMargin), height: Math.min(box.home.height, foldedHeight) };
    if (box.children.length === 0) return box.home;
    const sizes = box.children.map(child => this.sizeOf(child));
    box.mapX = squeezed(box.home.width, box.children.map((child, i) => ({ from: child.home.left, to: child.home.left + child.home.width, needs: sizes[i].width })));
    box.mapY = squeezed(box.home.height, box.children.map((child, i) => ({ from: child.home.top, to: child.home.top + child.home.height, needs: sizes[i].height })));
    box.sizes = sizes;
    return { width: box.mapX(box.home.width), height: box.mapY(box.home.height) };
  }
  putAt(box, place) {
    Object.assign(box, place);
    if (box.folded) return;
    box.children.forEach((child, i) => {
      const { left, top, width, height } = child.home, x = box.mapX(left), y = box.mapY(top), size = box.sizes[i];
      const spareX = box.mapX(left + width) - x - size.width, spareY = box.mapY(top + height) - y - size.height;
      this.putAt(child, { x: box.x + x + spareX / 2, y: box.y + y + spareY / 2, width: size.width, height: size.height });
    });
    for (const curve of box.curves) curve.points = this.moved(curve, box);
  }
  /// A curve goes on touching the boxes at its ends; between them it moves as what lies there does.
  moved(curve, box) {
    const points = curve.home.map((value, i) => i % 2 === 0 ? box.x + box.mapX(value - box.home.x) : box.y + box.mapY(value - box.home.y)), last = points.length - 2;
    for (const [end, beside, at] of [[0, 2, this.scene.boxes[curve.from]], [last, last - 2, this.scene.boxes[curve.to]]]) {
      const x = at.x + (curve.home[end] - at.home.x) * at.width / at.home.width, y = at.y + (curve.home[end + 1] - at.home.y) * at.height / at.home.height;
      points[beside] += x - points[end]; points[beside + 1] += y - points[end + 1];
      points[end] = x; points[end + 1] = y;
    }
    return points;
  }
}

/// Where a place along an axis moves: a stretch becomes as short as the boxes over it allow, and stays as it is where there are none. `spans`: { from, to, needs }.
function squeezed(length, spans) {
  const stops = [...new Set([0, length, ...spans.flatMap(s => [s.from, s.to])])].sort((a, b) => a - b), moved = [stops[0]];
  for (let i = 1; i < stops.length; ++i) {
    const over = spans.filter(s => s.from <= stops[i - 1] && s.to >= stops[i]), factor = over.length ? Math.max(...over.map(s => s.needs / (s.to - s.from))) : 1;
    moved.push(moved[i - 1] + (stops[i] - stops[i - 1]) * factor);
  }
  return at => {
    let i = stops.findIndex(stop => stop >= at);
    if (i <= 0) return at + (i < 0 ? moved[moved.length - 1] - stops[stops.length - 1] : moved[0] - stops[0]);
    return moved[i - 1] + (at - stops[i - 1]) * (moved[i] - moved[i - 1]) / (stops[i] - stops[i - 1]);
  };
}
