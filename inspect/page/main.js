// The page: tabs, search, what is selected, light and dark.
class Page {
  constructor() {
    this.views = {}; this.selection = null;
    const has = { graph: !!scenes.nodes, entry: !!model.entry && model.steps.length > 0 };
    this.tabs = [['overview', 'Overview', true], ['graph', 'Graph', has.graph], ['schedule', 'Schedule', has.entry], ['memory', 'Memory', has.entry && !!model.entry.memory], ['kernels', 'Kernels', has.entry], ['weights', 'Weights', model.weights.length + description.tensors.length > 0]].filter(t => t[2]);
    document.getElementById('model').textContent = visibleName(description.name);
    document.getElementById('stage').textContent = [description.kind, description.stage].filter(Boolean).join(' · ');
    document.title = visibleName(description.name) + ' · Hone';
    const nav = document.getElementById('tabs');
    for (const [id, title] of this.tabs) nav.append(el('button', { type: 'button', role: 'tab', id: 'tab-' + id, onclick: () => this.open(id) }, title));
    document.getElementById('close').addEventListener('click', () => this.select(null));
    document.getElementById('theme').addEventListener('click', () => this.setDark(!document.documentElement.classList.contains('dark')));
    document.addEventListener('keydown', e => { if (e.key === '/' && e.target.tagName !== 'INPUT') { e.preventDefault(); document.getElementById('search').focus(); } else if (e.key === 'Escape') this.select(null); });
    new Search(document.getElementById('search'), document.getElementById('hits'), target => this.select(target, true));
  }
  begin() {
    this.setDark(matchMedia('(prefers-color-scheme: dark)').matches);
    this.open('overview');
  }
  setDark(dark) {
    document.documentElement.classList.toggle('dark', dark);
    readPalette();
    for (const view of Object.values(this.views)) for (const picture of view.pictures || []) picture.camera.redraw();
  }
  open(id) {
    if (!this.tabs.some(t => t[0] === id)) return;
    this.tab = id;
    const area = document.getElementById('stagearea');
    if (!this.views[id]) this.views[id] = this.make(id, area);
    for (const [name, view] of Object.entries(this.views)) view.box.hidden = name !== id;
    for (const [name] of this.tabs) document.getElementById('tab-' + name).setAttribute('aria-selected', String(name === id));
    this.mark(false);
  }
  make(id, area) {
    const box = el('div', { class: 'view' });
    area.append(box);
    const makers = { overview: () => box.append(overview()), kernels: () => box.append(kernelTable()), weights: () => box.append(weightTable()), graph: () => this.makeGraph(box), schedule: () => this.makeSchedule(box), memory: () => this.makeMemory(box) };
    return { box, ...(makers[id]() || {}) };
  }
  makeGraph(box) {
    const crumbs = el('div', { class: 'crumbs' }), choose = el('div', { class: 'switch' });
    const foldButton = (title, folded) => el('button', { type: 'button', class: 'link', id: folded ? 'foldall' : 'unfoldall', onclick: () => this.graph.foldAll(folded) }, title);
    const bar = el('div', { class: 'bar' }, crumbs, el('div', { class: 'space' }), foldButton('Fold all', true), foldButton('Unfold all', false), legend(), choose);
    box.append(bar);
    const pictures = [], boxes = [];
    const show = which => {
      boxes.forEach((b, i) => { b.hidden = i !== which; });
      [...choose.children].forEach((b, i) => b.setAttribute('aria-pressed', String(i === which)));
      this.graph = pictures[which];
      pictures[which].camera.redraw();
      pictures[which].moved(pictures[which].camera);
      this.mark(false);
    };
    const add = (scene, what, title) => {
      const canvasBox = el('div', { class: 'canvasbox', id: 'graph-' + what });
      box.append(canvasBox);
      const picture = new GraphView(canvasBox, scene, what, target => this.select(target));
      picture.onmove = path => this.showCrumbs(crumbs, picture, path);
      const number = pictures.length;
      pictures.push(picture); boxes.push(canvasBox);
      choose.append(el('button', { type: 'button', onclick: () => show(number) }, title));
    };
    add(scenes.nodes, 'node', 'Nodes');
    if (scenes.kernels) add(scenes.kernels, 'step', 'Kernels');
    if (pictures.length < 2) choose.hidden = true;
    this.showGraph = what => show(Math.max(0, pictures.findIndex(p => p.what === what)));
    show(0);
    return { pictures };
  }
  showCrumbs(crumbs, picture, path) {
    const whole = el('button', { type: 'button', onclick: () => picture.camera.fit(true) }, description.stage || 'graph');
    crumbs.replaceChildren(whole, ...path.flatMap(b => [el('span', { class: 'sep' }, '/'), el('button', { type: 'button', onclick: () => picture.open(b) }, b.kind === kinds.lane ? partNames[b.part] : b.title)]));
  }
  makeSchedule(box) {
    const note = howTimed();
    const canvasBox = el('div', { class: 'canvasbox', id: 'gantt' });
    box.append(el('div', { class: 'bar' }, el('span', {}, `${model.entry.name}: ${model.steps.length} steps, ${timeText(model.total)}`), el('span', { class: 'muted' }, note)), canvasBox);
    return { pictures: [new GanttView(canvasBox, target => this.select(target))] };
  }
  makeMemory(box) {
    const canvasBox = el('div', { class: 'canvasbox', id: 'memory' });
    const names = el('div', { class: 'legend' }, Object.values(categories).map(([name, part]) => el('span', { class: 'p-' + part }, name)));
    box.append(el('div', { class: 'bar' }, el('span', {}, `Arena ${bytesText(model.entry.memory.arena_bytes)}`), el('span', { class: 'muted' }, 'for what lives within a step; below: what stays from step to step'), el('div', { class: 'space' }), names), canvasBox);
    return { pictures: [new MemoryView(canvasBox, target => this.select(target))] };
  }

  /// target: { kind: node | step | buffer | value | weight, id }, or null. `reveal` also goes where it can be seen.
  select(target, reveal = false) {
    if (target && (!about[target.kind] || target.id === null || target.id === undefined)) return;
    this.selection = target;
    const side = document.getElementById('details'), hidden = side.hidden;
    side.hidden = !target;
    if (target) {
      document.getElementById('detail').replaceChildren(el('div', {}, about[target.kind](target.id)));
      side.scrollTop = 0;
    }
    if (reveal && target) this.goTo(target);
    if (hidden !== side.hidden) requestAnimationFrame(() => this.mark(reveal)); else this.mark(reveal);
  }
  goTo(target) {
    if (target.kind === 'node' || (target.kind === 'weight' && this.tab === 'graph')) { if (this.tab !== 'graph') this.open('graph'); this.showGraph('node'); }
    else if (target.kind === 'step' && this.tab === 'graph' && scenes.kernels) this.showGraph('step');
    else if (target.kind === 'buffer' && this.tab === 'schedule') this.open('memory');
  }
  mark(reveal) {
    const t = this.selection, view = this.views[this.tab];
    if (!view || !view.pictures) return;
    const nodes = !t ? [] : t.kind === 'node' ? [t.id] : t.kind === 'step' ? model.steps[t.id].nodes : t.kind === 'value' ? model.readers[t.id] : t.kind === 'weight' ? model.readers[model.weights[t.id].value] : [];
    const steps = !t ? [] : t.kind === 'step' ? [t.id] : t.kind === 'node' ? model.stepsOf[t.id] : t.kind === 'buffer' ? [...(model.writers.get(model.rootOf(t.id)) || []), ...(model.users.get(model.rootOf(t.id)) || [])] : [];
    for (const picture of view.pictures) {
      if (picture instanceof GraphView && picture.what === 'node') picture.mark(nodes, t && t.kind === 'node' ? model.stepsOf[t.id].flatMap(s => model.steps[s].nodes) : []);
      else if (picture instanceof MemoryView) picture.mark(t && t.kind === 'buffer' ? [model.rootOf(t.id)] : []);
      else picture.mark(steps, []);
      if (reveal && picture.reveal && (!(picture instanceof GraphView) || picture === this.graph)) picture.reveal(picture.what === 'node' ? nodes : steps);
    }
  }
}

const legend = () => el('div', { class: 'legend' }, partOrder.filter(part => model.graph.nodes.some(n => n.part === part)).map(part => el('span', { class: 'p-' + part }, partNames[part])));

class Search {
  constructor(input, list, go) {
    Object.assign(this, { input, list, go, at: 0, hits: [] });
    this.index = [
      ...model.weights.map((w, id) => ({ kind: 'weight', id, text: visibleName(w.name), note: 'weight' })),
      ...model.steps.map(s => ({ kind: 'step', id: s.id, text: `${s.name} ${modulesOf(s)}`, note: 'step ' + s.id })),
      ...model.graph.nodes.map(n => ({ kind: 'node', id: n.id, text: `${n.op} ${placeOf(n)} ${n.results.map(v => visibleName(model.graph.values[v].name)).join(' ')}`, note: partNames[n.part] })),
    ];
    for (const one of this.index) one.low = one.text.toLowerCase();
    input.addEventListener('input', () => this.search());
    input.addEventListener('keydown', e => this.key(e));
    input.addEventListener('blur', () => setTimeout(() => { list.hidden = true; }, 150));
    input.addEventListener('focus', () => this.search());
  }
  search() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.hits = words.length ? this.index.filter(one => words.every(w => one.low.includes(w))).slice(0, 60) : [];
    this.at = 0;
    this.list.hidden = words.length === 0;
    this.list.replaceChildren(...this.hits.map((hit, i) => el('li', { class: i === 0 ? 'on' : '', onmousedown: e => { e.preventDefault(); this.choose(i); } }, el('span', { class: 'what' }, hit.text), el('span', { class: 'muted' }, hit.note))));
    if (words.length && !this.hits.length) this.list.append(el('li', { class: 'muted' }, 'nothing has that in its name'));
  }
  key(e) {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      this.at = Math.max(0, Math.min(this.hits.length - 1, this.at + (e.key === 'ArrowDown' ? 1 : -1)));
      [...this.list.children].forEach((li, i) => { li.classList.toggle('on', i === this.at); if (i === this.at) li.scrollIntoView({ block: 'nearest' }); });
    } else if (e.key === 'Enter') this.choose(this.at);
    else if (e.key === 'Escape') { this.input.value = ''; this.search(); this.input.blur(); }
  }
  choose(i) {
    const hit = this.hits[i];
    if (!hit) return;
    this.list.hidden = true;
    this.go({ kind: hit.kind, id: hit.id });
  }
}

const page = new Page();
page.begin();
