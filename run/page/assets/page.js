"use strict"
// Draws the page of a run from the JSON in the element "run"; its form is that of run/page/page.py.
const run = JSON.parse(document.getElementById("run").textContent)
const record = run.record

const COLOURS = {
  busy: "blue", data: "orange", result: "green", place: "red", record: "purple", engine: "sky", start: "grey", end: "pale",
  executing: "blue", wait_engine: "sky", wait_semaphore: "orange", wait_fetch: "purple", idle: "pale",
  load: "orange", store: "red", copy: "yellow", weights: "sky", multiply: "blue", vector: "green", scalar: "purple",
  collective: "green", control: "grey", rest: "pale", stall: "grey", queue: "grey",
}
const MEANINGS = run.meanings
const number = value => typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(5)).toLocaleString("en") : value.toLocaleString("en")
const percent = value => `${(100 * value).toFixed(1)} %`
const words = text => text.replaceAll("_", " ")
const short = value => value >= 1e9 ? `${number(value / 1e9)} G` : value >= 1e6 ? `${number(value / 1e6)} M` : value >= 1e4 ? `${number(value / 1e3)} k` : number(value)
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

function el(name, given = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(given)) key === "style" ? made.style.cssText = value : key.startsWith("on") ? made[key] = value : made.setAttribute(key, value)
  made.append(...children.filter(child => child !== null))
  return made
}

function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children)
}

// ---- tables

function table(columns, rows) {
  const numeric = columns.map((_, at) => rows.every(row => typeof row[at] === "number" || row[at] === "" || /^[\d.,]+ %$/.test(row[at])))
  const cell = (tag, at, value) => {
    const kind = numeric[at] ? "number" : columns[at] === "code" ? "code" : ""
    return el(tag, kind ? {class: kind} : {}, typeof value === "number" ? number(value) : value ?? "")
  }
  return el("div", {class: "scroll"}, el("table", {},
    el("thead", {}, el("tr", {}, ...columns.map((name, at) => cell("th", at, words(name))))),
    el("tbody", {}, ...rows.map(row => el("tr", {}, ...row.map((value, at) => cell("td", at, value)))))))
}

const isMap = value => value !== null && typeof value === "object" && !Array.isArray(value)
const shares = new Set(["busy", "waits", "queues", "utilisation", "share"])

function plain(value, share) {
  if (value === null || value === undefined) return "none"
  if (typeof value === "boolean") return value ? "yes" : "no"
  if (typeof value === "number") return share && !Number.isInteger(value) ? percent(value) : number(value)
  if (Array.isArray(value)) return value.map(one => plain(one, share)).join(value.some(one => typeof one === "string") ? ", " : " ") || "none"
  if (isMap(value)) return Object.entries(value).map(([key, one]) => `${words(key)} ${plain(one, share || shares.has(key))}`).join(", ") || "none"
  return value
}

const settings = values => Object.entries(values).filter(([, value]) => value !== null).map(([name, value]) => `${name}=${value}`).join(" ")

function everything() {
  const rows = []
  for (const [name, value] of Object.entries(record)) {
    if (name === "curves") continue
    const list = Array.isArray(value) && value.length > 0 && value.every(isMap) ? value.map(Object.entries) : null
    const nested = isMap(value) && Object.keys(value).length > 0 && Object.values(value).every(isMap)
    const lines = list ? list.map(([[, title], ...rest]) => [title, Object.fromEntries(rest)]) : nested ? Object.entries(value) : null
    if (!lines) rows.push(el("tr", {}, el("th", {}, words(name)), el("td", {class: "text"}, name === "settings" ? settings(value) : plain(value, shares.has(name)))))
    else {
      const columns = [...new Set(lines.flatMap(([, row]) => Object.keys(row)))]
      const texts = lines.map(([title, row]) => [words(String(title)), ...columns.map(key => key in row ? plain(row[key], shares.has(key) || (shares.has(name) && key !== "records")) : "")])
      rows.push(el("tr", {}, el("th", {}, words(name)), el("td", {}, table(["", ...columns], texts))))
    }
  }
  return el("div", {class: "scroll"}, el("table", {}, el("tbody", {}, ...rows)))
}

// ---- result

function heading() {
  const texts = {passed: "passed", failed: "failed", model: "no RTL has run"}
  const cards = []
  const card = (value, name) => cards.push(el("div", {class: "card"}, el("b", {}, value), el("span", {}, name)))
  if (record.cycles !== null) card(number(record.cycles), record.modelled ? "cycles, by the timing model" : "cycles")
  if (record.microseconds !== undefined) card(`${number(record.microseconds)} µs`, "at the machine's clock")
  if (record.utilisation !== null) card(percent(record.utilisation), `of the ideal ${number(record.ideal_cycles)} cycles`)
  if (record.compared) card(number(record.compared), record.mismatches ? "results compared" : "results compared, bit for bit equal")
  if (record.mismatches) card(number(record.mismatches), "results differ")
  return [
    el("header", {}, el("h1", {}, run.title), el("span", {class: `badge ${run.verdict}`}, texts[run.verdict])),
    el("code", {class: "command"}, run.command || settings(record.settings)),
    cards.length ? el("div", {class: "cards"}, ...cards) : null,
  ]
}

function tileTable(rows, wrong) {
  return el("div", {class: "scroll"}, el("table", {class: "tile"}, el("tbody", {}, ...rows.map((row, at) =>
    el("tr", {}, ...row.map((text, along) => el("td", wrong.has(`${at},${along}`) ? {class: "wrong"} : {}, text)))))))
}

function failure() {
  if (!record.problems.length && !run.differences.length) return null
  const parts = record.problems.map(text => el("p", {}, text))
  const tile = run.wrong_tile
  if (tile) {
    const wrong = new Set(tile.places.map(([row, column]) => `${row - tile.row},${column - tile.column}`))
    parts.push(el("p", {}, `${tile.title} is the first tile that differs, in ${number(tile.places.length)} of ${number(tile.found.length * tile.found[0].length)} elements:`),
      el("div", {class: "tiles"}, el("div", {}, el("h3", {}, "this run"), tileTable(tile.found, wrong)), el("div", {}, el("h3", {}, "golden"), tileTable(tile.expected, wrong))))
  }
  if (run.differences.length) parts.push(el("details", {}, el("summary", {}, "first different bytes of HBM"), el("pre", {}, run.differences.join("\n"))))
  const made = section(record.problems.length ? "Why it failed" : "Differences", ...parts)
  made.classList.add("bad")
  return made
}

// ---- where the cycles went

function causes(part) {
  const found = part.causes || part.queues
  if (!found || !Object.keys(found).length) return null
  const kinds = Object.keys(Object.values(found)[0])
  const ordered = part.causes ? kinds : ["executing", "wait_engine", "wait_semaphore", "wait_fetch", "idle"].filter(name => kinds.includes(name))
  const rows = Object.entries(found).flatMap(([name, counts]) => {
    const sum = ordered.reduce((total, kind) => total + (counts[kind] || 0), 0) || 1
    const bars = ordered.filter(kind => counts[kind]).map(kind => el("i", {
      style: `width:${100 * counts[kind] / sum}%;background:var(--${COLOURS[kind]})`,
      title: `${words(kind)}: ${number(counts[kind])} cycles, ${percent(counts[kind] / sum)}`,
    }))
    return [el("span", {}, name), el("div", {role: "img", "aria-label": `${name}: ${ordered.map(kind => `${words(kind)} ${percent((counts[kind] || 0) / sum)}`).join(", ")}`}, ...bars)]
  })
  const used = ordered.filter(kind => Object.values(found).some(counts => counts[kind]))
  return section("Where the cycles went",
    el("p", {class: "faint"}, part.causes ? "Every cycle of each engine, by its cause." : "Every cycle of each queue, by the counters of the core. PROFILE=1 tells the cause of each cycle of the engines."),
    el("div", {class: "stack"}, ...rows), legend(used, MEANINGS),
    el("details", {}, el("summary", {}, "as numbers"), table(["", ...ordered], Object.entries(found).map(([name, counts]) => [name, ...ordered.map(kind => counts[kind] || 0)])),
      part.causes ? el("ul", {}, ...used.map(kind => el("li", {}, `${kind}: ${MEANINGS[kind].replace(`${kind}: `, "")}`))) : null))
}

function legend(kinds, meanings = {}) {
  return el("div", {class: "legend"}, ...kinds.map(kind => el("span", meanings[kind] ? {title: meanings[kind]} : {}, el("i", {style: `background:var(--${COLOURS[kind] || "grey"})`}), words(kind))))
}

function roofline(part) {
  const {peak, width, operations, bytes, intensity, reached} = part.roofline || {}
  if (!operations || !bytes) return null
  const ridge = peak / width, low = Math.min(ridge, intensity) / 8, high = Math.max(ridge, intensity) * 8
  const bottom = 2 ** Math.floor(Math.log2(Math.min(reached, low * width) / 2)), top = 2 ** Math.ceil(Math.log2(peak * 1.5))
  const bound = Math.min(peak, intensity * width), box = el("div", {class: "chart"})
  const x = [low, ridge, intensity, high].sort((a, b) => a - b).filter((value, at, all) => value !== all[at - 1])
  const ceiling = x.map(value => Math.min(peak, value * width)), point = x.map(value => value === intensity ? reached : null)
  charts.push(() => plot(box, 260, {
    scales: {x: {time: false, distr: 3, log: 2}, y: {distr: 3, log: 2, range: [bottom, top]}},
    axes: [axis({label: "operations of the array for each byte of HBM", labelSize: 22}), axis({size: 62, label: "operations a cycle", labelSize: 22})],
    series: [{}, {stroke: colour("ink"), width: 2, points: {show: false}}, {stroke: colour("red"), points: {show: true, size: 12, fill: colour("red")}}],
    cursor: {show: false},
  }, [x, ceiling, point]))
  return section("Roofline", box, el("p", {class: "faint"},
    `The run reached ${number(reached)} operations a cycle, ${percent(reached / bound)} of what ${bound < peak ? "HBM" : "the array"} allows: the array has ${number(peak)} operations a cycle, HBM ${number(width)} bytes. ` +
    `Together ${number(operations)} operations and ${number(bytes)} bytes.`))
}

// ---- charts

let charts = []
let drawn = []

const axis = given => ({stroke: colour("faint"), grid: {stroke: colour("line"), width: 1}, ticks: {stroke: colour("line")}, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", values: (_, all) => all.map(value => value === null ? "" : short(value)), ...given})

const cyclesAxis = () => axis({size: 26, space: 84, values: (_, all) => all.map(number)})

function plot(box, height, options, data) {
  const made = new uPlot({width: Math.max(box.clientWidth, 200), height, legend: {show: false}, ...options}, data, box)
  drawn.push([made, box, height])
  return made
}

function redraw() {
  for (const [made] of drawn) made.destroy()
  drawn = []
  for (const draw of charts) draw()
}

// ---- the timeline and the memory, which show the same cycles

const ROW = 24

function tracksOf(group) {
  const {bars, tracks} = group, found = tracks.map(() => [])
  bars.track.forEach((track, at) => found[track].push(at))
  const used = tracks.map((_, track) => track).filter(track => found[track].length)
  return {rows: used.map(track => found[track]), names: used.map(track => tracks[track])}
}

function colourOf(group, at) {
  const kind = group.texts[group.bars.kind[at]], name = group.texts[group.bars.name[at]]
  return COLOURS[kind === "stall" || kind === "rest" ? name : kind] || "grey"
}

function timeline(part) {
  const groups = part.groups || []
  const bars = groups.filter(group => group.bars && group.bars.track.length)
  const curves = [...(part.memory || []).map(one => ({...one, curves: [one]})), ...groups.filter(group => group.curves)]
  if (!bars.length && !curves.length) return null
  const gutter = innerWidth < 600 ? 100 : 118, end = Math.max(part.cycles, 1), linked = []
  const detail = el("div", {class: "detail faint", "aria-live": "polite"}, "Point at a bar, or tap it, to read it here.")
  let from = 0, to = end
  const show = (low, high) => {
    const wide = Math.min(Math.max(high - low, 4), end)
    from = Math.min(Math.max(low, 0), end - wide), to = from + wide
    for (const one of linked) one.setScale("x", {min: from, max: to})
  }
  const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) * factor, at + (to - at) * factor)
  const common = (height, given, data, box, hooks = {}) => {
    const made = plot(box, height, {
      ...given, padding: [6, 14, 0, 0],
      cursor: {drag: {x: true, y: false, setScale: false}, y: false, points: {show: false}, sync: {key: "cycles"}},
      hooks: {
        ...hooks,
        setSelect: [u => { if (u.select.width > 3) { show(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); u.setSelect({left: 0, width: 0, top: 0, height: 0}, false) } }],
      },
    }, data)
    made.over.addEventListener("dblclick", () => show(0, end))
    made.over.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, made.posToVal(event.offsetX, "x"))
    }, {passive: false})
    linked.push(made)
    return made
  }
  const xScale = {time: false, range: () => [from, to], auto: false}
  const blocks = []
  for (const group of bars) {
    const {rows, names} = tracksOf(group), box = el("div", {class: "chart"})
    const height = rows.length * ROW + 34, shown = group.bars
    const at = (u, left, top) => {
      const row = rows[Math.floor(top / (u.bbox.height / devicePixelRatio) * rows.length)], cycle = u.posToVal(left, "x")
      if (!row) return -1
      let low = 0, high = row.length
      while (low < high) { const middle = (low + high) >> 1; shown.begin[row[middle]] <= cycle ? low = middle + 1 : high = middle }
      const slack = u.posToVal(2, "x") - u.posToVal(0, "x"), found = row[low - 1], next = row[low]
      if (found !== undefined && cycle < Math.max(shown.end[found], shown.begin[found] + slack)) return found
      return next !== undefined && shown.begin[next] - cycle < slack ? next : -1
    }
    const tell = (u, event) => {
      const found = at(u, event.offsetX, event.offsetY)
      if (found < 0) return
      const [begin, stop] = [shown.begin[found], shown.end[found]], name = group.texts[shown.name[found]], more = group.texts[shown.text[found]]
      detail.classList.remove("faint")
      detail.replaceChildren(el("b", {}, name), ` · cycles ${number(begin)} to ${number(stop)} (${number(stop - begin)})`, more ? el("br") : "", more)
    }
    const paint = u => {
      const {ctx, bbox} = u, step = bbox.height / rows.length, ink = {}
      ctx.save()
      ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip()
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`; ctx.textBaseline = "middle"; ctx.textAlign = "left"
      rows.forEach((row, line) => {
        const y = bbox.top + line * step + step * 0.12, tall = step * 0.76
        let until = -1
        for (const one of row) {
          if (shown.end[one] < from || shown.begin[one] > to) continue
          const x = u.valToPos(shown.begin[one], "x", true), wide = Math.max(u.valToPos(shown.end[one], "x", true) - x, devicePixelRatio)
          if (x + wide <= until + 0.3) continue
          const name = colourOf(group, one)
          ctx.fillStyle = ink[name] ??= colour(name)
          ctx.fillRect(x, y, Math.max(wide - (wide > 4 ? 1 : 0), 1), tall)
          until = x + wide
          const text = group.texts[shown.name[one]], left = Math.max(x, bbox.left)
          if (x + wide - left > 34 * devicePixelRatio) {
            ctx.save(); ctx.beginPath(); ctx.rect(left, y, x + wide - left - 4, tall); ctx.clip()
            ctx.fillStyle = ["blue", "green", "red", "grey"].includes(name) ? "#fff" : "#111"
            if (name === "pale") ctx.fillStyle = colour("ink")
            ctx.fillText(text, left + 4 * devicePixelRatio, y + tall / 2); ctx.restore()
          }
        }
      })
      ctx.restore()
    }
    charts.push(() => {
      const made = common(height, {
        scales: {x: xScale, y: {range: [0, rows.length]}},
        axes: [cyclesAxis(), axis({size: gutter, grid: {show: false}, ticks: {show: false}, splits: () => rows.map((_, line) => rows.length - line - 0.5), values: () => names, gap: 6})],
        series: [{}, {show: true, stroke: "transparent", points: {show: false}}],
      }, [[0, end], [null, null]], box, {draw: [paint]})
      for (const kind of ["mousemove", "click"]) made.over.addEventListener(kind, event => tell(made, event))
    })
    const kinds = [...new Set(shown.kind.map((_, one) => { const kind = group.texts[shown.kind[one]]; return kind === "stall" || kind === "rest" ? group.texts[shown.name[one]] : kind }))].filter(kind => kind in COLOURS)
    const thinned = group.window ? el("p", {class: "faint"}, `Thinned: of ${number(group.of)} bars, those shorter than ${number(group.window)} cycles are drawn together. The timeline for Perfetto has all of them.`) : null
    blocks.push(el("h3", {}, group.name), thinned, box, kinds.length > 1 ? legend(kinds, MEANINGS) : null)
  }
  const palette = ["blue", "orange", "green", "red", "purple", "sky", "grey", "yellow"]
  for (const group of curves) {
    const many = group.curves.length > 1, box = el("div", {class: "chart"})
    const lines = group.curves.filter(one => one.x.length)
    if (!lines.length) continue
    const data = uPlot.join(lines.map(one => [one.x, one.y]))
    const largest = Math.max(...lines.flatMap(one => one.y), 1)
    charts.push(() => common(many ? 150 : 104, {
      scales: {x: xScale, y: {range: [0, largest * 1.08]}},
      axes: [cyclesAxis(), axis({size: gutter, space: 24})],
      series: [{}, ...lines.map((_, at) => ({stroke: colour(palette[at]), width: 1.5, fill: many ? undefined : colour(palette[at]) + "33", paths: uPlot.paths.stepped({align: 1}), points: {show: false}, spanGaps: true}))],
    }, data, box))
    const room = group.room ? `, at most ${number(largest)} of ${number(group.room)} (${percent(largest / group.room)})` : group.unit ? `, at most ${number(largest)}` : ""
    blocks.push(el("h3", {}, group.unit ? `${group.name}: ${group.unit} in use${room}` : group.name), box)
    if (many) blocks.push(el("div", {class: "legend"}, ...lines.map((one, at) => el("span", {}, el("i", {style: `background:var(--${palette[at]})`}), one.name))))
    const window = Math.max(...lines.map(one => one.window))
    if (window > 1) blocks.push(el("p", {class: "faint"}, `Thinned: the largest value in each ${number(window)} cycles.`))
  }
  charts.unshift(() => { linked.length = 0 })
  const button = (text, title, act) => el("button", {type: "button", title, "aria-label": title, onclick: act}, text)
  return section("Timeline and memory",
    el("p", {class: "faint"}, "Drag across cycles to enlarge them, or Ctrl and the mouse wheel; a double click shows all. All rows show the same cycles."),
    el("div", {class: "tools"}, button("+", "enlarge", () => zoom(0.5)), button("−", "reduce", () => zoom(2)), button("◀", "earlier", () => show(from - (to - from) / 2, to - (to - from) / 2)), button("▶", "later", () => show(from + (to - from) / 2, to + (to - from) / 2)), button("all", "all cycles", () => show(0, end))),
    detail, ...blocks.filter(one => one !== null))
}

function lines(part) {
  if (!part.lines || !part.lines.length) return null
  const called = part.lines.some(line => line.of)
  const columns = ["line", ...(called ? ["called by"] : []), "engine", "cycles", "share", "instructions", "code"]
  const rows = part.lines.map(line => [line.line, ...(called ? [line.of] : []), line.engine, line.cycles, percent(line.share), line.records, line.code])
  return section("Lines of the kernel with the most cycles", el("p", {class: "faint"}, "Lines run in parallel, so their shares add up to more than 100 %."), table(columns, rows))
}

function steps() {
  return Object.entries(record.curves || {}).map(([name, own]) => {
    const box = el("div", {class: "chart"}), titles = Object.keys(own), palette = ["blue", "orange", "green", "red", "purple", "sky", "grey", "yellow"]
    const length = Math.max(...Object.values(own).map(values => values.length))
    if (!length) return null
    charts.push(() => plot(box, 240, {
      scales: {x: {time: false}}, axes: [axis({label: "step", labelSize: 22}), axis({size: 62})],
      series: [{}, ...titles.map((_, at) => ({stroke: colour(palette[at % palette.length]), width: 1.5, points: {show: false}}))],
    }, [Array.from({length}, (_, at) => at + 1), ...titles.map(title => [...own[title], ...Array(length - own[title].length).fill(null)])]))
    return section(words(name), box, el("div", {class: "legend"}, ...titles.map((title, at) => el("span", {}, el("i", {style: `background:var(--${palette[at % palette.length]})`}), words(title)))))
  })
}

function motion() {
  if (!run.motion) return null
  const image = el("img", {alt: "The systolic array, cycle by cycle: weights, moving operands and partial sums", src: `data:image/svg+xml,${encodeURIComponent(run.motion)}`})
  return section("The array in motion", el("p", {class: "faint"}, "This product on the tensor engine alone; every number is a signal of the RTL."), el("figure", {}, image))
}

function files() {
  const names = Object.entries(run.files)
  if (!names.length) return null
  const rows = names.map(([name, path]) => el("tr", {}, el("th", {}, name), el("td", {class: "text"}, el("a", {href: path}, path))))
  return section("Files", el("p", {class: "faint"}, "The timeline opens in ui.perfetto.dev, a waveform in GTKWave."), el("div", {class: "scroll"}, el("table", {}, el("tbody", {}, ...rows))))
}

// ---- the page

function build(chosen) {
  charts = []
  const part = run.parts[chosen], place = el("div")
  const select = run.parts.length > 1 ? el("div", {class: "tools"}, el("label", {}, "shown: ", el("select", {onchange: event => build(Number(event.target.value))},
    ...run.parts.map((one, at) => el("option", at === chosen ? {value: at, selected: ""} : {value: at}, one.name)))),
    run.omitted ? el("span", {class: "faint"}, `${number(run.omitted)} more runs are not on this page.`) : "") : null
  const pair = part ? [causes(part), roofline(part)].filter(one => one !== null) : []
  place.append(...[
    ...heading(), failure(), select,
    pair.length > 1 ? el("div", {class: "two"}, ...pair) : pair[0] || null,
    part ? timeline(part) : null, ...steps(), part ? lines(part) : null, motion(), section("All figures", everything()), files(),
  ].filter(one => one !== null))
  document.getElementById("page").replaceChildren(place)
  redraw()
}

build(0)
let width = innerWidth
addEventListener("resize", () => {
  if (innerWidth === width) return
  width = innerWidth
  for (const [made, box, height] of drawn) made.setSize({width: Math.max(box.clientWidth, 200), height})
})
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw)
document.documentElement.dataset.drawn = drawn.length
