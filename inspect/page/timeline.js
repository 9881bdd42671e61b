// What runs when, and what lies where: both over the steps of the schedule.

/// Ticks of a time axis, at most about `most`: 1, 2 or 5 times a power of ten.
function ticks(from, to, most) {
  const rough = (to - from) / most, power = Math.pow(10, Math.floor(Math.log10(rough))), step = [1, 2, 5, 10].map(k => k * power).find(v => v >= rough) || rough, list = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) list.push(t);
  return list;
}

class GanttView {
  constructor(box, select) {
    this.horizontal = true; this.label = 'schedule';
    this.select = select; this.selected = new Set();
    this.lanes = partOrder.concat('other').filter(part => model.steps.some(s => laneOf(s) === part));
    this.bars = model.steps.map(step => ({ step, start: model.starts[step.id], length: step.run_us !== undefined ? step.run_us : model.timeOf(step), lane: this.lanes.indexOf(laneOf(step)) }));
    this.span = Math.max(...this.bars.map(b => b.start + b.length), 1e-9);
    this.head = 26;
    this.mostScale = 400;
    this.camera = new Camera(box, this);
    this.camera.setWorld(this.span, 1);
  }
  rowOf(lane, camera) { const height = Math.min(128, (camera.height - this.head - 20) / this.lanes.length); return [this.head + 10 + lane * height, height]; }
  draw(context, camera) {
    const from = camera.x, to = camera.x + camera.width / camera.scale;
    context.font = `11px ${sans}`; context.textBaseline = 'middle';
    for (let lane = 0; lane < this.lanes.length; ++lane) {
      const [y, height] = this.rowOf(lane, camera);
      context.fillStyle = palette.sunk;
      context.fillRect(0, y + 2, camera.width, height - 4);
    }
    for (const t of ticks(from, to, camera.width / 130)) {
      const x = camera.toScreenX(t);
      context.fillStyle = palette.line; context.fillRect(x, this.head, 1, camera.height);
      context.fillStyle = palette.muted; context.textAlign = 'center';
      if (t >= 0) context.fillText(t === 0 ? '0' : timeText(t), Math.max(12, x), 13);
    }
    for (const bar of this.bars) {
      if (bar.start > to || bar.start + bar.length < from) continue;
      const [y, height] = this.rowOf(bar.lane, camera), x = camera.toScreenX(bar.start), width = Math.max(1, bar.length * camera.scale - (bar.length * camera.scale > 4 ? 1 : 0)), c = colours(laneOf(bar.step)), marked = this.selected.has(bar.step.id);
      context.beginPath();
      context.roundRect(x, y + 20, width, height - 30, Math.min(4, width / 3));
      context.fillStyle = c.fill; context.fill();
      context.strokeStyle = marked ? palette.accent : c.line; context.lineWidth = marked ? 2.5 : 1;
      if (width > 3 || marked) context.stroke();
      else { context.fillStyle = c.line; context.fillRect(x, y + 20, width, height - 30); }
      if (width < 44) continue;
      context.save();
      context.beginPath(); context.rect(x + 3, y + 18, width - 6, height); context.clip();
      context.fillStyle = palette.text; context.textAlign = 'left';
      context.fillText(opsOf(bar.step), Math.max(x, 0) + 7, y + 20 + (height - 30) / 2);
      context.restore();
    }
    for (let lane = 0; lane < this.lanes.length; ++lane) {
      const [y] = this.rowOf(lane, camera), time = this.bars.filter(b => b.lane === lane).reduce((sum, b) => sum + model.timeOf(b.step), 0);
      context.fillStyle = colours(this.lanes[lane]).ink; context.textAlign = 'left';
      context.font = `600 11.5px ${sans}`;
      context.fillText(`${partNames[this.lanes[lane]] || 'other'}  ${timeText(time)}`, 12, y + 11);
      context.font = `11px ${sans}`;
    }
  }
  at(x, y, camera) {
    const py = camera.toScreenY(y), slack = 2 / camera.scale;
    let best = null;
    for (const bar of this.bars) {
      const [top, height] = this.rowOf(bar.lane, camera);
      if (py >= top + 16 && py <= top + height && x >= bar.start - slack && x <= bar.start + bar.length + slack && (!best || bar.length > best.length)) best = bar;
    }
    return best;
  }
  click(bar) { this.select(bar ? { kind: 'step', id: bar.step.id } : null); }
  hover(bar) { return hoverOfStep(bar.step.id); }
  mark(ids) { this.selected = new Set(ids); this.camera.redraw(); }
  reveal(ids) {
    const bars = ids.map(id => this.bars[id]).filter(Boolean);
    if (bars.length === 0) return;
    const from = Math.min(...bars.map(b => b.start)), to = Math.max(...bars.map(b => b.start + b.length)), margin = Math.max((to - from) * 2, this.span / 60);
    this.camera.show({ x: from - margin, y: 0, width: to - from + 2 * margin, height: 1 });
  }
}
const laneOf = step => partNames[step.part] ? step.part : 'other';

const categories = { 'saved activation': ['kept for the backward pass', 'forward'], activation: ['activations', 'loss'], gradient: ['gradients', 'backward'], update: ['of the update', 'update'] };

class MemoryView {
  constructor(box, select) {
    this.horizontal = true; this.label = 'memory over the steps';
    this.select = select; this.selected = new Set();
    this.memory = model.entry.memory;
    this.rects = model.entry.buffers.filter(b => b.storage === 'arena' && b.bytes > 0).sort((a, b) => b.bytes - a.bytes);
    this.mostScale = 120;
    this.camera = new Camera(box, this);
    this.camera.setWorld(model.steps.length, 1);
  }
  area(camera) { return { top: 150, bottom: camera.height - 74 }; }
  yOf(offset, camera) { const { top, bottom } = this.area(camera); return bottom - (bottom - top) * offset / Math.max(1, this.memory.arena_bytes); }
  draw(context, camera) {
    const { top, bottom } = this.area(camera), peak = this.memory.peak_step;
    context.font = `11px ${sans}`; context.textBaseline = 'middle';
    context.fillStyle = palette.sunk;
    context.fillRect(0, 34, camera.width, 84); context.fillRect(0, top, camera.width, bottom - top);
    this.drawLive(context, camera);
    this.drawAlways(context, camera, bottom + 32);
    for (const b of this.rects) {
      const x = camera.toScreenX(b.first_step), right = camera.toScreenX(b.last_step + 1);
      if (right < 0 || x > camera.width) continue;
      const y = this.yOf(b.offset + b.bytes, camera), height = Math.max(1, this.yOf(b.offset, camera) - y), c = colours(categories[b.category] ? categories[b.category][1] : 'other'), marked = this.selected.has(b.id);
      context.fillStyle = c.fill; context.fillRect(x, y, right - x, height);
      if (height > 3 || marked) { context.strokeStyle = marked ? palette.accent : c.line; context.lineWidth = marked ? 2.5 : 0.75; context.strokeRect(x + 0.5, y + 0.5, right - x - 1, Math.max(1, height - 1)); }
      if (height < 15 || right - x < 60) continue;
      context.save();
      context.beginPath(); context.rect(x, y, right - x - 4, height); context.clip();
      context.fillStyle = palette.text; context.textAlign = 'left';
      context.fillText(`${bufferLabel(b)}  ${bytesText(b.bytes)}`, Math.max(x, 0) + 6, y + height / 2);
      context.restore();
    }
    const x = camera.toScreenX(peak + 0.5);
    context.strokeStyle = palette.accent; context.lineWidth = 1.5; context.setLineDash([5, 4]);
    context.beginPath(); context.moveTo(x, 30); context.lineTo(x, bottom); context.stroke(); context.setLineDash([]);
    context.fillStyle = palette.accent; context.font = `600 11.5px ${sans}`; context.textAlign = x > camera.width / 2 ? 'right' : 'left';
    context.fillText(`peak ${bytesText(this.memory.peak_bytes)} at step ${peak}`, x + (x > camera.width / 2 ? -7 : 7), 24);
    context.font = `11px ${sans}`; context.fillStyle = palette.muted; context.textAlign = 'left';
    context.fillText('bytes alive', 12, 46); context.fillText('offset in the arena', 12, top + 12);
    for (const t of ticks(camera.x, camera.x + camera.width / camera.scale, camera.width / 90)) if (Number.isInteger(t) && t >= 0 && t < model.steps.length) { context.textAlign = 'center'; context.fillText('step ' + t, camera.toScreenX(t + 0.5), bottom + 14); }
  }
  /// What is in memory besides, all the time: weights, states and constants, by their shares.
  drawAlways(context, camera, top) {
    const roles = [['weight', 'weights', 'forward'], ['state', 'states: moments, statistics, counters', 'update'], ['constant', 'constants', 'other']];
    const parts = roles.map(([role, name, part]) => [name, part, model.program.persistents.filter(p => p.role === role).reduce((sum, p) => sum + p.bytes, 0)]).filter(([, , bytes]) => bytes > 0);
    const all = parts.reduce((sum, [, , bytes]) => sum + bytes, 0);
    let x = 0;
    for (const [name, part, bytes] of parts) {
      const width = camera.width * bytes / all, c = colours(part);
      context.fillStyle = c.fill; context.fillRect(x, top, width - 2, 30);
      context.fillStyle = c.ink; context.textAlign = 'left'; context.font = `11px ${sans}`;
      context.fillText(fitted(context, `${name} ${bytesText(bytes)}`, width - 18), x + 8, top + 16);
      x += width;
    }
  }
  drawLive(context, camera) {
    const live = this.memory.live, base = 118, height = 78;
    context.beginPath();
    context.moveTo(camera.toScreenX(0), base);
    live.forEach((bytes, i) => { const y = base - height * bytes / Math.max(1, this.memory.peak_bytes); context.lineTo(camera.toScreenX(i), y); context.lineTo(camera.toScreenX(i + 1), y); });
    context.lineTo(camera.toScreenX(live.length), base);
    context.fillStyle = palette.parts.other.fill; context.fill();
    context.strokeStyle = palette.parts.other.line; context.lineWidth = 1; context.stroke();
  }
  at(x, y, camera) {
    const py = camera.toScreenY(y), { top, bottom } = this.area(camera);
    if (py >= 30 && py < top && x >= 0 && x < model.steps.length) return { step: Math.floor(x) };
    if (py < top || py > bottom) return null;
    const offset = (bottom - py) / (bottom - top) * this.memory.arena_bytes;
    return this.rects.find(b => x >= b.first_step && x <= b.last_step + 1 && offset >= b.offset && offset < b.offset + b.bytes) || null;
  }
  click(thing) { this.select(!thing ? null : thing.step !== undefined ? { kind: 'step', id: thing.step } : { kind: 'buffer', id: thing.id }); }
  hover(thing) { return thing.step !== undefined ? `${hoverOfStep(thing.step)}\n${bytesText(this.memory.live[thing.step])} alive` : `${bufferLabel(thing)}\n${thing.type}, ${bytesText(thing.bytes)}\nsteps ${thing.first_step} to ${thing.last_step}`; }
  mark(ids) { this.selected = new Set(ids); this.camera.redraw(); }
}

/// What a buffer holds, for people: its name, or who makes it.
function bufferLabel(buffer) {
  if (buffer.name) return visibleName(buffer.name);
  const writers = model.writers.get(buffer.id) || [], step = model.steps[writers[0]];
  if (!step) return 'buffer ' + buffer.id;
  const last = model.graph.nodes[step.nodes[step.nodes.length - 1]];
  return `${last ? last.op : step.name}${last && last.module.length ? ' of ' + visibleName(last.module.join('/')) : ''}`;
}
