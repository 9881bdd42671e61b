// Pages of text and numbers: the overview, the kernels, the weights.

function bar(label, share, part, text, target) {
  const fill = el('i', { class: 'p-' + part });
  fill.style.width = Math.max(0.5, 100 * share) + '%';
  return [el('div', { class: 'label' }, target ? link(label, target) : label), el('div', { class: 'track' }, fill), el('div', { class: 'num muted' }, text)];
}

/// Steps that call one kernel, together.
function kernelRows() {
  const rows = new Map();
  for (const step of model.steps) {
    const key = step.kind === 'kernel' ? step.name : step.id;
    const row = rows.get(key) || { name: step.name, kind: step.kind, part: laneOf(step), steps: [], time: 0, flops: 0, bytes: 0, nodes: 0, ops: opsOf(step), where: modulesOf(step) };
    row.steps.push(step.id); row.time += model.timeOf(step); row.flops += step.flops || 0; row.bytes += (step.bytes_read || 0) + (step.bytes_written || 0); row.nodes = Math.max(row.nodes, step.nodes.length);
    rows.set(key, row);
  }
  return [...rows.values()].sort((a, b) => b.time - a.time);
}

function overview() {
  const cards = el('div', { class: 'cards' }), wrap = el('div', { class: 'wrap' }, headline(), cards);
  if (model.entry && model.steps.length) {
    cards.append(partsCard(), slowestCard());
    if (model.entry.memory) cards.append(peakCard());
    cards.append(fusedCard());
  }
  if (model.weights.length || description.tensors.length) cards.append(weightsCard());
  if (!model.entry) cards.append(opsCard());
  if (description.recipe) cards.append(recipeCard());
  return el('div', { class: 'scroll', id: 'overview' }, wrap);
}

function headline() {
  const parameters = description.tensors.filter(t => !model.weights.length || model.weights.some(w => w.name === t.name)).reduce((sum, t) => sum + t.shape.reduce((a, b) => a * b, 1), 0);
  const list = [[countText(parameters), 'parameters'], [countText(model.graph.nodes.length), 'nodes in ' + (description.stage || 'the graph')]];
  if (model.entry) {
    list.push([String(model.steps.length), 'steps of the schedule'], [String(new Set(model.steps.filter(s => s.kind === 'kernel').map(s => s.name)).size), 'kernels'], [timeText(model.total), model.measured ? 'a step, measured' : 'a step, estimated']);
    if (model.entry.memory) list.push([bytesText(model.entry.memory.arena_bytes), 'of memory for activations']);
    const roles = role => model.program.persistents.filter(p => p.role === role).reduce((sum, p) => sum + p.bytes, 0);
    list.push([bytesText(roles('weight') + roles('state')), 'of weights and states']);
  } else list.push([countText(model.graph.nodes.reduce((sum, n) => sum + (n.flops || 0), 0)), 'FLOPs']);
  const sizes = Object.entries(description.sizes);
  if (sizes.length) list.push([sizes.map(([k, v]) => `${visibleName(k)} = ${v}`).join(', '), description.assumed_sizes.length ? 'sizes; assumed: ' + visibleName(description.assumed_sizes.join(', ')) : 'sizes']);
  return el('div', { class: 'facts' }, list.map(([number, what]) => el('div', {}, el('b', {}, number), el('span', {}, what))));
}

const card = (title, note, ...content) => el('section', { class: 'card' }, el('h2', {}, title), el('p', { class: 'note' }, note), content);
const howTimed = () => model.measured ? (description.trace.steps < model.steps.length ? `Measured; the trace has ${description.trace.steps} of ${model.steps.length} steps.` : 'Measured, from the trace.') : 'Estimated from arithmetic and memory traffic; --trace FILE brings measured times.';

function partsCard() {
  const times = partOrder.concat('other').map(part => [part, model.steps.filter(s => laneOf(s) === part).reduce((sum, s) => sum + model.timeOf(s), 0)]).filter(([, time]) => time > 0);
  return card('Where a step spends its time', howTimed(), el('div', { class: 'bars' }, times.map(([part, time]) => bar(partNames[part] || part, time / model.total, part, `${timeText(time)}  ${shareText(time / model.total)}`))));
}
function slowestCard() {
  const rows = kernelRows().slice(0, 8), made = card('Kernels that take most time', 'All calls of a kernel together. ' + howTimed(), el('div', { class: 'bars' }, rows.map(r => bar(`${r.ops} · ${r.where}`, r.time / rows[0].time, r.part, `${timeText(r.time)}  ${shareText(r.time / model.total)}`, { kind: 'step', id: r.steps[0] }))));
  made.id = 'slowest';
  return made;
}
function peakCard() {
  const memory = model.entry.memory, alive = memory.alive_at_peak.map(id => model.entry.buffers[id]).filter(b => b.bytes > 0), step = model.steps[memory.peak_step];
  const sums = Object.keys(categories).map(c => [c, alive.filter(b => b.category === c).reduce((sum, b) => sum + b.bytes, 0)]).filter(([, bytes]) => bytes > 0);
  const stack = el('div', { class: 'stack' }, sums.map(([c, bytes]) => { const part = el('i', { class: 'p-' + categories[c][1], title: `${categories[c][0]}: ${bytesText(bytes)}` }); part.style.width = 100 * bytes / memory.peak_bytes + '%'; return part; }));
  const legend = el('div', { class: 'legend' }, sums.map(([c, bytes]) => el('span', { class: 'p-' + categories[c][1] }, `${categories[c][0]} ${bytesText(bytes)}`)));
  const made = card('Alive at the memory peak', '', stack, legend, el('p', {}), el('div', { class: 'bars' }, alive.slice(0, 8).map(b => bar(bufferLabel(b), b.bytes / alive[0].bytes, categories[b.category] ? categories[b.category][1] : 'other', bytesText(b.bytes), { kind: 'buffer', id: b.id }))));
  made.querySelector('.note').append(`${bytesText(memory.peak_bytes)} in ${alive.length} buffers at `, link(`step ${step.id}, ${opsOf(step)}`, { kind: 'step', id: step.id }), '.');
  made.id = 'peak';
  return made;
}
function fusedCard() {
  const fused = model.steps.filter(s => s.nodes.length > 1).sort((a, b) => b.nodes.length - a.nodes.length), nodes = fused.reduce((sum, s) => sum + s.nodes.length, 0);
  const made = card('Nodes that became one kernel', `${nodes} nodes run in ${fused.length} fused steps. The largest:`, el('div', { class: 'bars' }, fused.slice(0, 8).map(s => bar(`${opsOf(s)} · ${modulesOf(s)}`, s.nodes.length / fused[0].nodes.length, laneOf(s), s.nodes.length + ' nodes', { kind: 'step', id: s.id }))));
  made.id = 'fused';
  return made;
}
function opsCard() {
  const counts = new Map();
  for (const node of model.graph.nodes) counts.set(node.op, (counts.get(node.op) || 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 12);
  return card('Operations', `${counts.size} kinds`, el('div', { class: 'bars' }, rows.map(([op, count]) => bar(op, count / rows[0][1], 'forward', String(count)))));
}
function weightsCard() {
  const rows = [...description.tensors].sort((a, b) => b.bytes - a.bytes).slice(0, 8);
  return card(model.graph.nodes.length ? 'Largest weights and states' : 'Largest tensors', `${description.tensors.length} in all`, el('div', { class: 'bars' }, rows.map(t => {
    const weight = model.weights.findIndex(w => w.name === t.name);
    return bar(visibleName(t.name), t.bytes / Math.max(1, rows[0].bytes), 'other', `${t.dtype}[${t.shape}]  ${bytesText(t.bytes)}`, weight >= 0 ? { kind: 'weight', id: weight } : null);
  })));
}
function recipeCard() {
  const r = description.recipe, set = o => Object.entries(o || {}).filter(([k, v]) => k !== 'kind' && (typeof v === 'number' ? v !== 0 : v === true)).map(([k, v]) => `${k} ${v}`).slice(0, 8).join(', ');
  return card('Recipe', 'What the plan trains with.', facts([['loss', r.loss && r.loss.kind], ['optimizer', r.optimizer && `${r.optimizer.kind}: ${set(r.optimizer)}`], ['schedule', r.schedule && r.schedule.kind], ['batch', r.data && String(r.data.batch_size)], ['precision', r.train && r.train.precision], ['convention', r.train && r.train.convention]]));
}

/// columns: [{ title, num, value(row) -> number or text to sort by, cell(row) -> content }]
function sortable(columns, rows, by, onrow) {
  let order = { column: by, down: true };
  const head = el('tr', {}, columns.map((c, i) => el('th', { class: c.num ? 'num' : '', tabindex: '0', scope: 'col', onclick: () => sort(i), onkeydown: e => { if (e.key === 'Enter') sort(i); } }, c.title)));
  const body = el('tbody', {});
  function sort(i) { order = { column: i, down: order.column === i ? !order.down : !!columns[i].num }; fill(); }
  function fill() {
    const value = columns[order.column].value;
    const sorted = [...rows].sort((a, b) => { const x = value(a), y = value(b); return (order.down ? -1 : 1) * (typeof x === 'string' ? x.localeCompare(y) : x - y); });
    body.replaceChildren(...sorted.slice(0, 2000).map(row => { const tr = el('tr', {}, columns.map(c => el('td', { class: c.num ? 'num' : '' }, c.cell(row)))); tr.addEventListener('click', () => { body.querySelectorAll('.on').forEach(e => e.classList.remove('on')); tr.classList.add('on'); onrow(row); }); return tr; }));
    [...head.children].forEach((th, i) => i === order.column ? th.setAttribute('aria-sort', order.down ? 'descending' : 'ascending') : th.removeAttribute('aria-sort'));
  }
  fill();
  return el('table', {}, el('thead', {}, head), body);
}

function kernelTable() {
  const time = r => r.time, per = (r, x) => r.time > 0 && model.measured ? 1e6 * x / r.time : 0;
  const columns = [
    { title: 'Operations', value: r => r.ops, cell: r => r.ops }, { title: 'Where', value: r => r.where, cell: r => el('span', { class: 'muted' }, r.where) },
    { title: 'Part', value: r => partOrder.indexOf(r.part), cell: r => chip(r.part) }, { title: 'Kernel', value: r => r.name, cell: r => el('code', {}, r.name) },
    { title: 'Calls', num: true, value: r => r.steps.length, cell: r => r.steps.length }, { title: 'Nodes', num: true, value: r => r.nodes, cell: r => r.nodes || '' },
    { title: model.measured ? 'Time' : 'Time, est.', num: true, value: time, cell: r => timeText(r.time) }, { title: 'Share', num: true, value: time, cell: r => shareText(r.time / model.total) },
    { title: 'FLOPs', num: true, value: r => r.flops, cell: r => countText(r.flops) }, { title: 'Memory', num: true, value: r => r.bytes, cell: r => bytesText(r.bytes) },
  ];
  if (model.measured) columns.push({ title: 'FLOP/s', num: true, value: r => per(r, r.flops), cell: r => countText(per(r, r.flops)) }, { title: 'B/s', num: true, value: r => per(r, r.bytes), cell: r => countText(per(r, r.bytes)) });
  return el('div', { class: 'scroll', id: 'kernels' }, sortable(columns, kernelRows(), 6, r => page.select({ kind: 'step', id: r.steps[0] })));
}

function weightTable() {
  if (!model.weights.length) {
    const columns = [{ title: 'Name', value: t => t.name, cell: t => visibleName(t.name) }, { title: 'Type', value: t => t.dtype, cell: t => `${t.dtype}[${t.shape}]` }, { title: 'Size', num: true, value: t => t.bytes, cell: t => bytesText(t.bytes) }];
    return el('div', { class: 'scroll', id: 'weights' }, sortable(columns, description.tensors, 2, () => {}));
  }
  const value = w => model.graph.values[w.value], reduced = w => w.all_reduce ? `bucket ${w.all_reduce.bucket}, node ${w.all_reduce.node}` : '';
  const columns = [
    { title: 'Weight', value: w => w.name, cell: w => visibleName(w.name) }, { title: 'Type', value: w => value(w).type, cell: w => el('code', {}, value(w).type) }, { title: 'Size', num: true, value: w => value(w).bytes || 0, cell: w => bytesText(value(w).bytes) },
    { title: 'Trained', value: w => w.updated_by !== null ? 'yes' : 'no', cell: w => w.updated_by !== null ? 'yes' : 'no' }, { title: 'Gradient reduced in', value: reduced, cell: reduced },
  ];
  return el('div', { class: 'scroll', id: 'weights' }, sortable(columns, model.weights, 2, w => page.select({ kind: 'weight', id: model.weights.indexOf(w) })));
}
