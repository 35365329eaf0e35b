// The map: draws what the server placed, colours it by score, and lets one choose, find and zoom.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const RAISED = 0.3;
const HIGH = 0.65;
const NETWORK_HEIGHT = 22;
const NARROW = 640;
const BESIDE = 60; // for the names of those at the sides
const LONGEST_NAME = 24; // characters; a title has all of it
const LETTER = 7; // units that a character of a name takes, about
const RADIUS = 7.5; // of a router, in units
const CROWDED = 0.27; // of the way to the next router, which a router may take
const MANY_ROUTES = 120; // lines, from which they step back
const PLAIN = 1.2; // units a pixel at which things have the size that is in the style
const LARGEST = 1.6; // times that size, on small screens
const PAUSES = [250, 1000, 4000]; // ms before what a server did not answer is asked again; the last stays

function shape(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
}

// What the server says, or null. One that is away is asked again until it is back.
async function told(url) {
  for (let turn = 0; ; turn += 1) {
    try {
      const response = await fetch(url, { headers: { accept: "application/json" } });
      return response.ok ? await response.json() : null;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // which is what a lost connection is
      await new Promise((done) => setTimeout(done, PAUSES[turn] ?? PAUSES.at(-1)));
    }
  }
}

async function drawMap(map) {
  const drawing = await told(map.dataset.map);
  if (!drawing) return;
  const canvas = map.querySelector(".canvas");
  const state = map.state ?? (map.state = prepare(map, canvas));
  map.dataset.shape = drawing.shape;
  canvas.replaceChildren();
  state.size = [drawing.width, drawing.height];
  if (!state.view) state.view = firstView(canvas, drawing);
  state.nodes = new Map(drawing.nodes.map((node) => [node.id, node]));
  state.heads = drawing.heads;
  state.apart = spacing(drawing.nodes);
  state.lines = new Map(); // by each fact that a line stands for
  state.all = [];
  // To those who cannot see it a router's page says what a line would.
  const layer = shape("g", { class: "lines", "aria-hidden": "true" }, canvas);
  for (const line of drawing.lines) drawLine(map, state, layer, line);
  state.overlay = shape("g", { class: "overlay" }, canvas);
  const top = shape("g", { class: "nodes" }, canvas);
  const above = (node) => ["network", "external_as", "router", "route_reflector"].indexOf(node.kind);
  for (const node of drawing.nodes.toSorted((a, b) => above(a) - above(b))) drawNode(map, state, top, node);
  const routes = drawing.lines.filter((line) => line.kind === "bgp_route");
  map.classList.toggle("many-routes", routes.length > MANY_ROUTES);
  (top.querySelector(".router") ?? top.firstChild)?.setAttribute("tabindex", "0");
  fillSearch(drawing.nodes, drawing.heads);
  applyMarks(state, drawing);
  applyLayers(map);
  state.thingSize = 0; // new ones have none yet
  setView(canvas, state);
  showPath(map, state, chosenPath());
  showCentre(map, state);
  map.dispatchEvent(new CustomEvent("map:drawn", { bubbles: true }));
  document.body.dataset.mapDrawn = "yes";
}

// How far routers are from the next one, as most are.
function spacing(nodes) {
  const routers = nodes.filter((node) => node.kind === "router" || node.kind === "route_reflector");
  const nearest = routers.map((one) => Math.min(...routers.filter((other) => other !== one).map((other) => Math.hypot(one.x - other.x, one.y - other.y))));
  return nearest.toSorted((a, b) => a - b)[Math.floor(nearest.length / 4)] ?? Infinity;
}

// The thing about which the map is, as if it had been chosen on it.
function showCentre(map, state) {
  const centre = map.dataset.around;
  if (!centre || location.hash) return;
  mark(map, place(state, centre).element);
  open(map, entityUrl(map, centre));
}

// The node of a thing, or of the one that stands for it.
function place(state, name) {
  return state.nodes.get(name) ?? state.nodes.get(state.heads[name]);
}

// A narrow screen begins with the routers; the networks at both edges are a zoom away.
function firstView(canvas, { width, height, nodes }) {
  const inner = nodes.filter((node) => node.kind !== "network").map((node) => node.x);
  if (canvas.clientWidth > NARROW || inner.length === 0) return [0, 0, width, height];
  const [left, right] = [Math.min(...inner) - BESIDE, Math.max(...inner) + BESIDE];
  return [left, 0, right - left, height];
}

function drawLine(map, state, layer, line) {
  const a = state.nodes.get(line.a);
  const b = state.nodes.get(line.b);
  const path = line.kind === "bgp_route" ? routePath(a, b) : `M${a.x} ${a.y}L${b.x} ${b.y}`;
  const group = shape("g", { class: `edge ${line.kind}` }, layer);
  const drawn = shape("path", { d: path, class: "line" }, group);
  const target = shape("path", { d: path, class: "hit" }, group);
  shape("title", {}, target).textContent = `${line.kind} ${line.a} – ${line.b}`;
  const query = new URLSearchParams([["predicate", line.kind], ["arg", line.a], ["arg", line.b]]);
  group.dataset.url = `${map.dataset.fact}?${query}`;
  const entry = { ...line, element: group, drawn };
  state.all.push(entry);
  for (const fact of line.facts) state.lines.set(fact, entry);
}

// A route leaves its peering towards the edge of the map where its network stands.
function routePath(a, b) {
  const middle = (a.x + b.x) / 2;
  return `M${a.x} ${a.y}C${middle} ${a.y} ${middle} ${b.y} ${b.x} ${b.y}`;
}

function drawNode(map, state, layer, node) {
  const kind = node.kind.replace("_", " ");
  const own = plain(node.id).includes(plain(node.label)) ? node.id : `${node.label} (${node.id})`;
  const name = node.members > 1 ? `${own} and ${node.members - 1} more` : own;
  const group = shape("g", {
    class: `thing ${node.kind}${node.members > 1 ? " cluster" : ""}`,
    transform: `translate(${node.x} ${node.y})`,
    role: "button",
    "aria-label": `${kind} ${name}`,
    tabindex: "-1",
  }, layer);
  outline(node, group);
  shape("text", { class: "name", x: 0, y: 4, "text-anchor": "middle" }, group).textContent = shownName(node);
  shape("title", {}, group).textContent = `${kind} ${name}`;
  group.dataset.id = node.id;
  group.dataset.url = entityUrl(map, node.id);
  state.nodes.set(node.id, { ...node, element: group });
}

function outline(node, group) {
  const size = radius(node);
  if (node.kind === "network") {
    const width = networkWidth(node);
    shape("rect", { class: "node network", x: -width / 2, y: -NETWORK_HEIGHT / 2, width, height: NETWORK_HEIGHT, rx: NETWORK_HEIGHT / 2 }, group);
  } else if (node.kind === "external_as") {
    shape("path", { class: "node external_as", d: "M0 -7L7 0L0 7L-7 0Z" }, group);
  } else if (node.kind === "route_reflector") {
    shape("rect", { class: "node route_reflector", x: -size, y: -size, width: 2 * size, height: 2 * size, rx: 2 }, group);
  } else {
    shape("circle", { class: "node router", r: size }, group);
  }
}

function radius(node) {
  return node.members > 1 ? 9 + Math.min(9, Math.sqrt(node.members)) : RADIUS;
}

function plain(name) {
  return name.toLowerCase().replace(/[\s_-]+/g, " ");
}

function networkWidth(node) {
  return 18 + 7.2 * shownName(node).length;
}

// Sentences speak of ids: a router that is called otherwise on the map would not be found in them.
function shownName(node) {
  const known = node.kind === "external_as" || plain(node.id).includes(plain(node.label));
  const name = known ? node.label : `${node.id} ${node.label}`;
  const cut = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
  return node.members > 1 ? `${cut} +${node.members - 1}` : cut;
}

function entityUrl(map, id) {
  return `${map.dataset.entity}?${new URLSearchParams([["id", id]])}`;
}

// Choosing, by mouse or by key: Tab stops once at the map, arrows go from thing to thing

const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function choose(map, element) {
  mark(map, element);
  open(map, element.dataset.url);
}

function mark(map, element) {
  map.querySelector(".chosen")?.classList.remove("chosen");
  element.classList.add("chosen");
}

function open(map, url) {
  map.dispatchEvent(new CustomEvent("map:choose", { bubbles: true, detail: url }));
}

function onKey(map, event) {
  const here = event.target.closest(".thing");
  const isChoice = event.key === "Enter" || event.key === " ";
  if (!here || !(isChoice || WAYS[event.key])) return;
  event.preventDefault();
  if (isChoice) choose(map, here);
  else walk(map.state, here, WAYS[event.key]);
}

function walk(state, here, [right, down]) {
  const from = state.nodes.get(here.dataset.id);
  let [next, least] = [null, Infinity];
  for (const node of state.nodes.values()) {
    const [x, y] = [node.x - from.x, node.y - from.y];
    const ahead = x * right + y * down;
    const aside = Math.abs(x * down) + Math.abs(y * right);
    const far = ahead + 2 * aside;
    if (ahead > 0 && far < least) [next, least] = [node, far];
  }
  if (!next) return;
  here.setAttribute("tabindex", "-1");
  next.element.setAttribute("tabindex", "0");
  next.element.focus();
}

// Colours

async function updateMarks(map) {
  if (!map.state?.all) return;
  const marks = await told(map.dataset.marks);
  if (marks) applyMarks(map.state, marks);
}

function applyMarks(state, { scores, stale }) {
  const old = new Set(stale);
  state.suspicious = new Set();
  for (const line of state.all) {
    const score = Math.max(0, ...line.facts.map((fact) => scores[fact] ?? 0));
    const level = score >= HIGH ? "high" : score >= RAISED ? "raised" : "low";
    if (level !== "low") state.suspicious.add(line.a).add(line.b);
    const isStale = line.facts.length > 0 && line.facts.every((fact) => old.has(fact));
    const wanted = `edge ${line.kind} ${level}${isStale ? " stale" : ""}`;
    const chosen = line.element.classList.contains("chosen") ? " chosen" : "";
    line.element.setAttribute("class", wanted + chosen);
    line.drawn.setAttribute("class", `line ${level}${isStale ? " stale" : ""}`);
  }
}

// Paths before and after, of an alert

function chosenPath() {
  return Number(document.querySelector('[data-path][aria-pressed="true"]')?.dataset.path ?? 0);
}

function showPath(map, state, index) {
  const data = document.getElementById("paths");
  if (!data) return;
  const chosen = JSON.parse(data.textContent)[index];
  state.overlay.replaceChildren();
  if (!chosen) return;
  drawPath(state, chosen.before, "before", -3);
  drawPath(state, chosen.after, "after", 3);
  for (const name of [...chosen.before, ...chosen.after]) place(state, name)?.element.classList.add("on-path");
}

function drawPath(state, names, kind, aside) {
  const steps = names.map((name) => place(state, name)).filter(Boolean);
  const points = steps.filter((node, index) => node !== steps[index - 1]); // many are one in a cluster
  for (let place = 0; place + 1 < points.length; place += 1) {
    const [a, b] = [points[place], points[place + 1]];
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const [x, y] = [(-(b.y - a.y) / length) * aside, ((b.x - a.x) / length) * aside];
    shape("line", { class: `path ${kind}`, x1: a.x + x, y1: a.y + y, x2: b.x + x, y2: b.y + y }, state.overlay);
    const turn = (Math.atan2(b.y - a.y, b.x - a.x) * 180) / Math.PI;
    const at = `translate(${(a.x + b.x) / 2 + x} ${(a.y + b.y) / 2 + y}) rotate(${turn})`;
    shape("path", { class: `arrow ${kind}`, d: "M-5 -5L5 0L-5 5Z", transform: at }, state.overlay);
  }
}

for (const list of document.querySelectorAll("[data-paths]")) {
  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-path]");
    if (!button) return;
    for (const other of list.querySelectorAll("[data-path]")) other.setAttribute("aria-pressed", String(other === button));
    for (const map of document.querySelectorAll(".map")) {
      if (!map.state) continue; // it shows the chosen path once it is drawn
      map.querySelectorAll(".on-path").forEach((node) => node.classList.remove("on-path"));
      showPath(map, map.state, chosenPath());
    }
  });
}

// Layers, search, zoom

function prepare(map, canvas) {
  const state = {};
  for (const box of map.querySelectorAll("[data-layer]")) box.addEventListener("change", () => applyLayers(map));
  for (const button of map.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => zoom(canvas, state, button.dataset.zoom));
  }
  canvas.addEventListener("click", (event) => {
    const element = event.target.closest("[data-url]");
    if (element && !state.dragged) choose(map, element);
  });
  canvas.addEventListener("keydown", (event) => onKey(map, event));
  const find = map.querySelector("[data-find]");
  find.addEventListener("change", () => findThing(map, find.value));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return; // the page must stay scrollable
    event.preventDefault();
    scale(canvas, state, event.deltaY > 0 ? 1.15 : 0.87, at(canvas, state, event));
  }, { passive: false });
  let start = null;
  canvas.addEventListener("pointerdown", (event) => { start = { x: event.clientX, y: event.clientY, view: [...state.view] }; state.dragged = false; });
  canvas.addEventListener("pointermove", (event) => {
    if (!start || event.buttons !== 1) return;
    const ratio = start.view[2] / canvas.clientWidth;
    const [x, y] = [(event.clientX - start.x) * ratio, (event.clientY - start.y) * ratio];
    if (Math.hypot(x, y) > 4) state.dragged = true;
    state.view = [start.view[0] - x, start.view[1] - y, start.view[2], start.view[3]];
    setView(canvas, state);
  });
  window.addEventListener("pointerup", () => { start = null; });
  return state;
}

function applyLayers(map) {
  for (const box of map.querySelectorAll("[data-layer]")) map.classList.toggle(`without-${box.dataset.layer}`, !box.checked);
}

function fillSearch(nodes, heads) {
  const list = document.getElementById("things");
  const hidden = Object.keys(heads).map((id) => ({ id, label: id }));
  list.replaceChildren(...[...nodes, ...hidden].map((node) => Object.assign(document.createElement("option"), { value: node.id, label: node.label })));
}

function findThing(map, text) {
  const state = map.state;
  const wanted = text.trim().toLowerCase();
  if (!wanted) return;
  const nodes = [...state.nodes.values()];
  const named = (node) => [node.id.toLowerCase(), node.label.toLowerCase()];
  const hidden = Object.keys(state.heads);
  const found = nodes.find((node) => named(node).includes(wanted))?.id
    ?? hidden.find((name) => name.toLowerCase() === wanted)
    ?? nodes.find((node) => named(node).some((name) => name.includes(wanted)))?.id
    ?? hidden.find((name) => name.toLowerCase().includes(wanted));
  if (found) goTo(map, found);
  else open(map, entityUrl(map, text.trim())); // which says that it is nowhere
}

function goTo(map, name) {
  const [state, node] = [map.state, place(map.state, name)];
  const [width, height] = state.size.map((size) => size / 2.5);
  state.view = [node.x - width / 2, node.y - height / 2, width, height];
  setView(map.querySelector(".canvas"), state);
  mark(map, node.element);
  open(map, entityUrl(map, name));
}

function zoom(canvas, state, way) {
  if (way === "reset") {
    state.view = [0, 0, ...state.size];
    setView(canvas, state);
    return;
  }
  const middle = [state.view[0] + state.view[2] / 2, state.view[1] + state.view[3] / 2];
  scale(canvas, state, way === "in" ? 0.75 : 1.33, middle);
}

function scale(canvas, state, factor, [x, y]) {
  const [left, top, width, height] = state.view;
  const limited = Math.min(Math.max(factor, 80 / width), (2 * state.size[0]) / width);
  state.view = [x - (x - left) * limited, y - (y - top) * limited, width * limited, height * limited];
  setView(canvas, state);
}

function at(canvas, state, event) {
  const box = canvas.getBoundingClientRect();
  return [
    state.view[0] + ((event.clientX - box.left) / box.width) * state.view[2],
    state.view[1] + ((event.clientY - box.top) / box.height) * state.view[3],
  ];
}

function setView(canvas, state) {
  canvas.setAttribute("viewBox", state.view.map((value) => value.toFixed(1)).join(" "));
  const unit = Math.max(state.view[2] / canvas.clientWidth, state.view[3] / canvas.clientHeight);
  const size = Math.min(unit / PLAIN, LARGEST);
  if (size === state.thingSize) return; // moved, and not zoomed
  state.thingSize = size;
  const shrunk = Math.min(1, (CROWDED * state.apart) / (RADIUS * size));
  const nodes = [...state.nodes.values()];
  sizeThings(nodes, size, shrunk);
  placeNames(nodes, size, shrunk, state.suspicious);
}

// Things keep their size on the screen, so that those that lie upon each other part as one zooms in;
// where they are many they are smaller, and their names are not.
function sizeThings(nodes, size, shrunk) {
  for (const { x, y, kind, element } of nodes) {
    const isNetwork = kind === "network";
    const own = isNetwork ? Math.min(1, size) : size; // these stand close at the edges
    element.setAttribute("transform", `translate(${x} ${y}) scale(${own.toFixed(3)})`);
    if (!isNetwork) element.firstChild.setAttribute("transform", `scale(${shrunk.toFixed(3)})`);
  }
}

// A name stands where it covers no other and no router; one without such a place waits for a zoom.
function placeNames(nodes, size, shrunk, suspicious) {
  const first = (node) => (suspicious.has(node.id) ? -1 : ["route_reflector", "router", "external_as"].indexOf(node.kind));
  const boxes = nodes.map((node) => glyphBox(node, size, shrunk));
  const peerings = boxes.filter(({ of }) => of.kind === "external_as");
  const taken = boxes.filter(({ of }) => of.kind !== "external_as");
  const named = nodes.filter((node) => node.kind !== "network"); // those have theirs inside
  for (const node of named.toSorted((a, b) => first(a) - first(b) || b.members - a.members)) {
    const places = namePlaces(node, shrunk).map((at) => ({ at, box: nameBox(node, at, size) }));
    const free = places.filter(({ box }) => !taken.some((other) => other.of !== node && overlap(box, other)));
    const best = free.find(({ box }) => !peerings.some((other) => other.of !== node && overlap(box, other))) ?? free[0];
    const { at, box } = best ?? places[0];
    for (const [key, value] of Object.entries(at)) node.element.children[1].setAttribute(key, value);
    node.element.classList.toggle("unnamed", !best);
    if (best) taken.push(box);
  }
}

function overlap(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

function glyphBox(node, size, shrunk) {
  const isNetwork = node.kind === "network";
  const high = isNetwork ? (NETWORK_HEIGHT / 2) * Math.min(1, size) : radius(node) * size * shrunk;
  const wide = isNetwork ? (networkWidth(node) / 2) * Math.min(1, size) : high;
  return { of: node, left: node.x - wide, right: node.x + wide, top: node.y - high, bottom: node.y + high };
}

// A router's below, or else above or at a side; a peering's first at the side away from its gateway.
function namePlaces(node, shrunk) {
  const half = radius(node) * shrunk;
  const below = { x: 0, y: half + 12, "text-anchor": "middle" };
  const above = { x: 0, y: -half - 4, "text-anchor": "middle" };
  const right = { x: half + 3, y: 4, "text-anchor": "start" };
  const left = { x: -half - 3, y: 4, "text-anchor": "end" };
  if (node.kind === "external_as") return [node.leftwards ? left : right, above, below];
  return [below, above, right, left];
}

function nameBox(node, { x, y, "text-anchor": anchor }, size) {
  const width = LETTER * shownName(node).length;
  const left = anchor === "middle" ? -width / 2 : anchor === "end" ? x - width : x;
  return {
    left: node.x + left * size,
    right: node.x + (left + width) * size,
    top: node.y + (y - 10) * size,
    bottom: node.y + (y + 3) * size,
  };
}
