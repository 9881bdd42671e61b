// What the page shows: the description (docs/dump_json.md) with the ways between its parts, and how numbers are said.
const description = JSON.parse(document.getElementById('description').textContent);
const scenes = JSON.parse(document.getElementById('scenes').textContent);
const partNames = { forward: 'forward', loss: 'loss', backward: 'backward', all_reduce: 'all-reduce', update: 'update' };
const partOrder = Object.keys(partNames);

function makeModel() {
  const graph = description.graph || { nodes: [], values: [], inputs: [], outputs: [], aliases: [], ops: {} };
  const program = description.program || null;
  const entry = program ? program.entries.find(e => e.name === description.stage) || null : null;
  const kernels = new Map(program ? program.kernels.map(k => [k.name, k.text]) : []);
  const stepsOf = graph.nodes.map(() => []);
  const steps = entry ? entry.steps : [];
  const namesNodes = steps.some(s => s.nodes.length > 0);
  for (const step of steps) for (const node of step.nodes) if (stepsOf[node]) stepsOf[node].push(step.id);
  const readers = graph.values.map(() => []);
  for (const node of graph.nodes) for (const v of node.operands) if (v !== null) readers[v].push(node.id);
  const rootOf = b => { while (entry.buffers[b].of !== undefined) b = entry.buffers[b].of; return b; };
  const writers = new Map(), users = new Map();
  for (const step of steps) {
    for (const b of step.writes) push(writers, rootOf(b), step.id);
    for (const b of step.reads) push(users, rootOf(b), step.id);
  }
  const measured = steps.some(s => s.measured_us !== undefined);
  const timeOf = step => step.measured_us !== undefined ? step.measured_us : measured ? 0 : step.estimated_us;
  let clock = 0;
  const starts = steps.map(step => { const start = step.start_us !== undefined ? step.start_us : clock; clock = start + timeOf(step); return start; });
  return { graph, program, entry, steps, kernels, stepsOf, namesNodes, readers, rootOf, writers, users, measured, timeOf, starts, total: steps.reduce((sum, s) => sum + timeOf(s), 0), weights: description.weights || [] };
}
function push(map, key, value) { const list = map.get(key); if (!list) map.set(key, [value]); else if (list[list.length - 1] !== value) list.push(value); }
const model = makeModel();

const bytesText = n => n === null || n === undefined ? '?' : n < 1024 ? n + ' B' : scaled(n, 1024, ['KiB', 'MiB', 'GiB', 'TiB']);
const countText = n => n === null || n === undefined ? '?' : n < 1000 ? String(Math.round(n)) : scaled(n, 1000, ['k', 'M', 'G', 'T', 'P']);
const timeText = us => us === null || us === undefined ? '?' : us < 999.5 ? shortNumber(us) + ' µs' : us < 999500 ? shortNumber(us / 1e3) + ' ms' : shortNumber(us / 1e6) + ' s';
const shareText = x => !isFinite(x) ? '' : x < 0.001 ? '<0.1 %' : (100 * x).toFixed(x < 0.0995 ? 1 : 0) + ' %';
function shortNumber(x) { return x >= 99.5 ? x.toFixed(0) : x >= 9.95 ? x.toFixed(1) : x.toFixed(2); }
function scaled(n, base, units) { let i = -1; do { n /= base; ++i; } while (n >= base && i + 1 < units.length); return shortNumber(n) + ' ' + units[i]; }

/// An element; strings are text, never markup.
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'class') element.className = value;
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined && child !== '') element.append(child);
  return element;
}
const chip = part => el('span', { class: 'chip p-' + (partNames[part] ? part : 'other') }, partNames[part] || part || 'step');
const visibleName = text => String(text).replace(/[\u0000-\u001f\u007f]/g, c => c === '\u007f' ? '\u2421' : String.fromCharCode(0x2400 + c.charCodeAt(0))).replace(/[\u2028-\u202e\u2066-\u2069]/g, '\ufffd');

function nodeTitle(id) { const node = model.graph.nodes[id]; return node ? node.op + ' ' + placeOf(node) : '?'; }
function placeOf(node) { const at = node.origin.node || node.origin.layer || node.origin.derived || ''; return visibleName(at); }
function valueTitle(id) { const v = model.graph.values[id]; return visibleName(v.input || v.name || '%' + v.id); }
function opsOf(step) {
  const ops = [...new Set(step.nodes.map(n => model.graph.nodes[n] ? model.graph.nodes[n].op : '?'))];
  return ops.length === 0 ? step.kind : ops.length <= 4 ? ops.join(', ') : ops.slice(0, 3).join(', ') + ' and ' + (ops.length - 3) + ' more';
}
function modulesOf(step) {
  const names = [...new Set(step.nodes.map(n => model.graph.nodes[n]).filter(Boolean).map(n => n.module.join('/')).filter(Boolean))];
  return visibleName(names.length === 0 ? step.origin : names.length <= 2 ? names.join(', ') : names[0] + ' … ' + names[names.length - 1]);
}
function bufferTitle(id) { const b = model.entry.buffers[id]; return visibleName(b.name || 'buffer ' + id); }
