// Times in the reader's zone, a Now view that stays fresh, and the demo's form to sign in.
// The page is whole without it.
'use strict'

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
const local = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'short' })
const exact = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat('sv-SE', { timeStyle: 'short' })
const relative = new Intl.RelativeTimeFormat('en')
const units = [
  ['day', 86400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
]

function ago(date) {
  const seconds = (date - Date.now()) / 1000
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? units.at(-1)
  return relative.format(Math.trunc(seconds / size), unit)
}

function formatOf({ dataset }) {
  if ('clock' in dataset) return clock
  return 'seconds' in dataset ? exact : local
}

function showTimes(root) {
  for (const element of root.querySelectorAll('time[datetime]')) {
    const date = new Date(element.dateTime)
    if (Number.isNaN(date.getTime())) continue
    const utc = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`
    if ('relative' in element.dataset) element.textContent = ago(date)
    else element.textContent = formatOf(element).format(date)
    element.title = 'relative' in element.dataset ? `${local.format(date)}, ${utc}` : utc
  }
}

showTimes(document)
const zoneNote = document.querySelector('[data-zone]')
if (zoneNote) zoneNote.textContent = `Times are ${zone}`

const demo = document.querySelector('form[data-demo]')
if (demo) fillIn(demo)

/** From `#name:password`, which no browser sends. Elsewhere any site could sign people in by a link. */
function fillIn(form) {
  const [, name, password] = /^#([^:]+):(.+)$/.exec(location.hash) ?? []
  if (!password) return
  history.replaceState(null, '', location.pathname + location.search)
  form.elements.name.value = decodeURIComponent(name)
  form.elements.password.value = decodeURIComponent(password)
  form.requestSubmit()
}

const main = document.querySelector('main[data-refresh]')
if (main) refreshing(main)

function refreshing(main) {
  const announce = document.getElementById('announce')
  const bar = document.createElement('p')
  const note = document.createElement('span')
  const button = document.createElement('button')
  let asOf = document.querySelector('footer time')
  let paused = false
  bar.className = 'fresh'
  bar.append(note, ' ', button)
  main.prepend(bar)
  button.addEventListener('click', () => {
    paused = !paused
    name()
    if (!paused) void refresh()
  })
  function name() {
    button.textContent = paused ? 'Resume' : 'Pause'
    note.textContent = paused ? 'Not refreshed' : 'Refreshed every 30 s'
  }
  name()
  setInterval(() => {
    if (!paused && !document.hidden && !isInUse()) void refresh()
  }, 30_000)
  document.addEventListener('visibilitychange', () => {
    if (!paused && !document.hidden && !isInUse()) void refresh()
  })

  /** Somebody reads or writes what a new main would take away. */
  function isInUse() {
    const at = document.activeElement
    if (at !== main && at !== button && main.contains(at)) return true
    return main.querySelector('details[open]') !== null || String(getSelection()) !== ''
  }

  async function refresh() {
    try {
      const answer = await fetch(location.href, { redirect: 'error' })
      if (!answer.ok) throw new Error(String(answer.status))
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
      const fresh = page.querySelector('main[data-refresh]')
      if (!fresh || isInUse()) return
      const before = main.querySelector('h1').textContent
      showTimes(fresh)
      while (bar.nextSibling) bar.nextSibling.remove()
      main.append(...fresh.childNodes)
      const after = main.querySelector('h1').textContent
      if (after !== before) announce.textContent = after
      asOf.replaceWith((asOf = page.querySelector('footer time')))
      showTimes(asOf.parentNode)
      name()
    } catch {
      note.textContent = 'Not refreshed: load the page again'
      announce.textContent = note.textContent
    }
  }
}
