// The panel at the side: all about what is selected.
function link(text, target) { return el('button', { class: 'link', type: 'button', onclick: () => page.select(target, true) }, text); }
/// A node: its op goes there, where it comes from stands beside it.
function nodeLink(id) { const node = model.graph.nodes[id]; return [link(node.op, { kind: 'node', id }), ' ', el('span', { class: 'muted' }, placeOf(node))]; }
function facts(rows) { return el('dl', {}, rows.filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])); }
function listOf(title, entries, most = 24) {
  if (entries.length === 0) return null;
  const list = el('ul', {}), show = (from, to) => list.append(...entries.slice(from, to).map(entry => el('li', {}, entry())));
  show(0, most);
  if (entries.length > most) {
    const more = el('button', { class: 'link muted', type: 'button', onclick: () => { more.remove(); show(most, entries.length); } }, `and ${entries.length - most} more`);
    return [el('h4', {}, title), list, more];
  }
  return [el('h4', {}, title), list];
}

function valueLine(id) {
  const value = model.graph.values[id];
  const name = value.number !== undefined && value.role === 'constant' ? String(value.number) : valueTitle(id);
  return [value.producer !== null ? nodeLink(value.producer) : link(`${value.role} ${name}`, { kind: 'value', id }), ' ', el('span', { class: 'muted mono' }, value.type)];
}

function kernelLines(stepId) {
  const step = model.steps[stepId];
  return [
    el('h4', {}, `Kernel: step ${step.id} of ${model.entry.name}`),
    el('div', {}, link(step.name, { kind: 'step', id: step.id }), ' ', el('span', { class: 'muted' }, `${timeText(model.timeOf(step))}${model.measured ? '' : ' estimated'}, ${shareText(model.timeOf(step) / model.total)} of the step`)),
    step.nodes.length > 1 ? el('p', { class: 'note' }, `One kernel of ${step.nodes.length} nodes; they are marked in the graph.`) : null,
    model.kernels.has(step.name) ? el('pre', {}, model.kernels.get(step.name)) : null,
  ];
}

function aboutNode(id) {
  const node = model.graph.nodes[id], steps = model.stepsOf[id];
  const weight = model.weights.find(w => w.all_reduce && w.all_reduce.node === id);
  return [
    chip(node.part), el('h3', {}, node.op), el('p', { class: 'note' }, model.graph.ops[node.op] || ''),
    facts([['ONNX node', visibleName(node.origin.node || '')], ['module', visibleName(node.module.join(' / '))], ['made as', visibleName(node.origin.derived || '')], ['FLOPs', node.flops === null ? null : countText(node.flops)], ['node', String(id)]]),
    listOf('Results', node.results.map(v => () => [el('span', {}, visibleName(model.graph.values[v].name || '%' + v)), ' ', el('span', { class: 'muted mono' }, `${model.graph.values[v].type}  ${bytesText(model.graph.values[v].bytes)}`)])),
    listOf('Operands', node.operands.filter(v => v !== null).map(v => () => valueLine(v))),
    Object.keys(node.attributes).length ? [el('h4', {}, 'Attributes'), facts(Object.entries(node.attributes).map(([k, v]) => [k, el('code', {}, visibleName(v))]))] : null,
    listOf(node.part === 'backward' ? 'Gradient of' : 'Gradient computed by', node.partners.map(n => () => nodeLink(n)), 8),
    weight ? listOf('Gradients that are reduced here', model.weights.filter(w => w.all_reduce && w.all_reduce.node === id).map(w => () => link(visibleName(w.name), { kind: 'weight', id: model.weights.indexOf(w) }))) : null,
    steps.map(kernelLines),
    model.namesNodes && steps.length === 0 ? el('p', { class: 'note' }, node.view ? 'A view: the same memory in another shape, no work.' : node.op === 'all_reduce' ? 'On one device there is nothing to exchange: it is a step of replica_step.' : 'No kernel of its own: on one device nothing needs it, or its readers do without.') : null,
    node.bodies ? el('p', { class: 'note' }, `With ${node.bodies.length} ${node.bodies.length === 1 ? 'body' : 'bodies'} of ${node.bodies.map(b => b.nodes.length).join(' and ')} nodes.`) : null,
    listOf('Read by', [...new Set(node.results.flatMap(v => model.readers[v]))].map(n => () => nodeLink(n)), 8),
  ];
}

function bufferLine(id, name) {
  const b = model.entry.buffers[id];
  return [name ? el('code', { class: 'muted' }, name + ' ') : null, link(b.storage === 'arena' ? bufferLabel(b) : bufferTitle(id), { kind: 'buffer', id }), ' ', el('span', { class: 'muted mono' }, `${b.role || (b.storage === 'arena' ? '' : b.storage)} ${b.type}`)];
}

function aboutStep(id) {
  const step = model.steps[id], time = model.timeOf(step), bytes = (step.bytes_read || 0) + (step.bytes_written || 0);
  const named = step.buffers ? step.buffers.map((b, i) => () => bufferLine(b, (step.writes.includes(b) && i >= step.reads.length ? 'y' : 'x') + i)) : [];
  return [
    chip(step.part), ' ', el('span', { class: 'chip p-other' }, step.kind), el('h3', {}, `Step ${id}: ${opsOf(step)}`), el('p', { class: 'note' }, visibleName(step.origin)),
    facts([
      ['kernel', step.name], [model.measured ? 'measured' : 'estimated', `${timeText(time)}, ${shareText(time / model.total)}`], ['runs measured', step.runs], ['FLOPs', step.flops === null ? null : countText(step.flops)],
      ['memory', `${bytesText(step.bytes_read)} read, ${bytesText(step.bytes_written)} written`],
      ['speed', time > 0 && model.measured ? `${countText(1e6 * (step.flops || 0) / time)}FLOP/s, ${countText(1e6 * bytes / time)}B/s` : null], ['points', step.range === undefined || step.range === null ? null : countText(step.range)],
      ['bucket', step.bucket], ['iterations', step.trips],
    ]),
    listOf(step.nodes.length > 1 ? `${step.nodes.length} nodes became this kernel` : 'Node', step.nodes.map(n => () => nodeLink(n)), 10),
    model.kernels.has(step.name) ? [el('h4', {}, 'Pseudo-code'), el('pre', {}, model.kernels.get(step.name))] : null,
    (step.bodies || []).map(body => listOf(`Steps of the body, ${step.trips === null || step.trips === undefined ? 'as often as the data say' : step.trips + ' times'}`, body.steps.map(s => () => [el('code', {}, s.name), ' ', el('span', { class: 'muted' }, visibleName(s.origin)), model.kernels.has(s.name) ? el('pre', {}, model.kernels.get(s.name)) : null]), 12)),
    named.length ? listOf('Its buffers', named) : [listOf('Reads', step.reads.map(b => () => bufferLine(b))), listOf('Writes', step.writes.map(b => () => bufferLine(b)))],
  ];
}

function aboutBuffer(id) {
  const b = model.entry.buffers[id], root = model.rootOf(id), stepLine = s => () => link(`step ${s}: ${opsOf(model.steps[s])}`, { kind: 'step', id: s });
  return [
    el('span', { class: 'chip p-other' }, b.category || b.role || b.storage), el('h3', {}, b.storage === 'arena' ? bufferLabel(b) : bufferTitle(id)),
    facts([['type', el('code', {}, b.type)], ['size', bytesText(b.bytes)], ['offset', b.offset === undefined || b.offset === null ? null : bytesText(b.offset)], ['alive', b.first_step === undefined ? null : `steps ${b.first_step} to ${b.last_step}`], ['view of', b.of === undefined ? null : link(bufferTitle(b.of), { kind: 'buffer', id: b.of })]]),
    listOf('Written by', (model.writers.get(root) || []).map(stepLine)), listOf('Read by', (model.users.get(root) || []).map(stepLine)),
  ];
}

function aboutValue(id) {
  const v = model.graph.values[id], weight = model.weights.find(w => w.value === id);
  if (weight) return aboutWeight(model.weights.indexOf(weight));
  return [el('span', { class: 'chip p-other' }, v.role || 'value'), el('h3', {}, valueTitle(id)), facts([['type', el('code', {}, v.type)], ['size', bytesText(v.bytes)], ['number', v.number]]), listOf('Read by', model.readers[id].map(n => () => nodeLink(n)))];
}

function aboutWeight(id) {
  const w = model.weights[id], v = model.graph.values[w.value];
  const made = w.all_reduce ? model.graph.nodes[w.all_reduce.node].operands[model.graph.nodes[w.all_reduce.node].results.indexOf(w.gradient)] : w.gradient;
  const maker = made !== null && made !== undefined ? model.graph.values[made].producer : null;
  return [
    el('span', { class: 'chip p-other' }, 'weight'), el('h3', {}, visibleName(w.name)),
    facts([
      ['type', el('code', {}, v.type)], ['size', bytesText(v.bytes)], ['gradient made by', maker !== null ? nodeLink(maker) : w.gradient === null ? 'not trained' : null],
      ['reduced in', w.all_reduce ? [link(`all_reduce, bucket ${w.all_reduce.bucket}`, { kind: 'node', id: w.all_reduce.node }), w.all_reduce.step !== undefined ? ` (step ${w.all_reduce.step} of replica_step)` : ''] : null],
      ['updated by', w.updated_by !== null ? nodeLink(w.updated_by) : null],
    ]),
    listOf('Read by', model.readers[w.value].map(n => () => nodeLink(n))),
  ];
}

const about = { node: aboutNode, step: aboutStep, buffer: aboutBuffer, value: aboutValue, weight: aboutWeight };
