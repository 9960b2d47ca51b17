// Where operators and edges of a graph are drawn: layers from left to right, or one below the other where there is no width.

function depths(operators, edges) {
  const depth = new Map(operators.map(({ name }) => [name, 0]));
  for (let round = 0; round < operators.length; round += 1) {
    let moved = false;
    for (const { from, to } of edges) if (depth.get(to) < depth.get(from) + 1) { depth.set(to, depth.get(from) + 1); moved = true; }
    if (!moved) break;
  }
  // a source stands next to who reads it first, so that its edge crosses nobody
  const read = new Set(edges.map(({ to }) => to));
  for (const { name } of operators) {
    const next = edges.filter(({ from, to }) => from === name && to !== name).map(({ to }) => depth.get(to));
    if (!read.has(name) && next.length) depth.set(name, Math.max(0, Math.min(...next) - 1));
  }
  return depth;
}

// Layers of entries {name} or, where an edge passes an operator by, {edge}.
function layered(operators, edges) {
  const depth = depths(operators, edges);
  const used = [...new Set(depth.values())].sort((a, b) => a - b);
  const level = new Map([...depth].map(([name, at]) => [name, used.indexOf(at)]));
  const layers = used.map(() => []);
  for (const { name } of operators) layers[level.get(name)].push({ name, before: [] });
  const entry = new Map(layers.flat().map((one) => [one.name, one]));
  const routes = new Map();
  for (const edge of edges) {
    const [start, end] = [level.get(edge.from), level.get(edge.to)];
    let last = entry.get(edge.from);
    const through = [];
    // a graph beyond what a picture has room for: its edges may cross operators
    if (edges.length * layers.length > 5000) { routes.set(edge, through); continue; }
    for (let at = start + 1; at < end; at += 1) {
      const passing = { edge, before: [last] };
      layers[at].push(passing);
      through.push(passing);
      last = passing;
    }
    if (end > start) entry.get(edge.to).before.push(last);
    routes.set(edge, through);
  }
  for (const layer of layers) {
    layer.forEach((one, i) => { one.order = one.before.length ? one.before.reduce((sum, { place }) => sum + place, 0) / one.before.length : (i + 0.5) / layer.length; });
    layer.sort((a, b) => a.order - b.order);
    layer.forEach((one, i) => { one.place = (i + 0.5) / layer.length; });
  }
  return { layers, routes };
}

export function across(operators, edges, width, unit) {
  const { layers, routes } = layered(operators, edges);
  const lane = 16 * unit;
  const least = 52 * unit;
  const room = (width + least) / layers.length - least;
  const size = { width: Math.max(172, Math.min(240, room / unit)) * unit, height: 90 * unit };
  const gap = layers.length > 1 ? Math.max(least, Math.min(200 * unit, (width - layers.length * size.width) / (layers.length - 1))) : 0;
  const wide = layers.length * size.width + (layers.length - 1) * gap;
  const left = Math.max(0, (width - wide) / 2);
  const height = (one) => (one.edge ? 4 * unit : size.height);
  const total = (layer) => layer.reduce((sum, one) => sum + height(one) + lane, -lane);
  const high = Math.max(...layers.map(total));
  const places = new Map();
  layers.forEach((layer, i) => {
    let y = (high - total(layer)) / 2;
    for (const one of layer) {
      Object.assign(one, { x: left + i * (size.width + gap), y: y + height(one) / 2 });
      if (one.name !== undefined) places.set(one.name, { x: one.x, y });
      y += height(one) + lane;
    }
  });
  const lines = edges.map((edge) => {
    const [a, b] = [places.get(edge.from), places.get(edge.to)];
    const middle = size.height / 2;
    const stops = [[a.x + size.width, a.y + middle], ...routes.get(edge).flatMap(({ x, y }) => [[x, y], [x + size.width, y]]), [b.x, b.y + middle]];
    let d = `M${stops[0]}`;
    for (let i = 1; i < stops.length; i += 1) {
      const [p, q] = [stops[i - 1], stops[i]];
      const half = (p[0] + q[0]) / 2;
      d += i % 2 ? `C${half} ${p[1]} ${half} ${q[1]} ${q}` : `L${q}`;
    }
    // near its end, where edges that join have come apart from their neighbours least
    const [p, q] = stops.slice(0, 2);
    return { edge, d, label: [(p[0] + q[0]) / 2, (p[1] + q[1]) / 2], anchor: "middle" };
  });
  return { size, places, lines, width: Math.max(width, wide), height: high };
}

export function down(operators, edges, width, unit) {
  const { layers } = layered(operators, edges);
  const names = layers.flat().filter(({ name }) => name !== undefined).map(({ name }) => name);
  const row = new Map(names.map((name, i) => [name, i]));
  const aside = edges.filter(({ from, to }) => row.get(to) !== row.get(from) + 1);
  const gutter = Math.min(6, aside.length) * 12 * unit;
  const size = { width: Math.min(320 * unit, width - gutter - 4), height: 90 * unit };
  const step = size.height + 30 * unit;
  const places = new Map(names.map((name, i) => [name, { x: gutter, y: i * step }]));
  const labelled = new Map();
  const lines = edges.map((edge) => {
    const [a, b] = [places.get(edge.from), places.get(edge.to)];
    const number = aside.indexOf(edge);
    const straight = number < 0;
    const x = straight ? gutter + size.width * 0.5 : gutter - ((number % 6) + 1) * 12 * unit;
    const labels = labelled.get(edge.to) ?? 0;
    if (!straight) labelled.set(edge.to, labels + 1);
    const d = straight ? `M${x} ${a.y + size.height}V${b.y}` : `M${gutter} ${a.y + size.height * 0.6}H${x}V${b.y + size.height * 0.4}H${gutter}`;
    return { edge, d, label: straight ? [x, b.y - 15 * unit] : [gutter + labels * 64 * unit, b.y - 15 * unit], anchor: straight ? "middle" : "start" };
  });
  return { size, places, lines, width, height: names.length * step - 30 * unit };
}

export function grid(operators, width, unit) {
  const lane = 14 * unit;
  const perRow = Math.max(1, Math.floor((width + lane) / (200 * unit + lane)));
  const size = { width: Math.min(320 * unit, (width + lane) / Math.min(perRow, operators.length) - lane), height: 90 * unit };
  const places = new Map(operators.map(({ name }, i) => [name, { x: (i % perRow) * (size.width + lane), y: Math.floor(i / perRow) * (size.height + lane) }]));
  return { size, places, lines: [], width, height: Math.ceil(operators.length / perRow) * (size.height + lane) - lane };
}
