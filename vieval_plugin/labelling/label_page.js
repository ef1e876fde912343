'use strict'
const page = JSON.parse(document.getElementById('data').textContent)
const keys = JSON.parse(atob(page.keys))
const aspects = Object.keys(page.answers)
const COLUMNS = ['benchmark', 'part', 'uid', 'generator', 'draw', 'rater', 'aspect', 'value']
const OTHER_SIDE = { first: 'second', second: 'first' }
const element = id => document.getElementById(id)
const cards = [...document.querySelectorAll('article')]
const questions = [...document.querySelectorAll('fieldset')]

let rater = ''
let at = 0
let marked = 0
// of each card, the key that was pressed for each aspect
let pressed = keys.map(() => ({}))
let kept = true

/* What the browser keeps: some refuse to, and what is there may be anything. */

const place = () => `vieval-label/${page.name}/${rater}`

function keep () {
  try {
    localStorage.setItem(place(), JSON.stringify({ at, pressed }))
    localStorage.setItem(`vieval-label/${page.name}`, rater)
    kept = true
  } catch {
    kept = false
  }
}

function recall () {
  let held
  try { held = JSON.parse(localStorage.getItem(place())) } catch { held = null }
  at = Number.isInteger(held?.at) && held.at >= 0 && held.at < keys.length ? held.at : 0
  pressed = keys.map((_, n) => Object.fromEntries(
    aspects.map(aspect => [aspect, held?.pressed?.[n]?.[aspect]]).filter(([aspect, key]) => Object.hasOwn(page.answers[aspect], key))
  ))
}

function lastRater () {
  try {
    return localStorage.getItem(`vieval-label/${page.name}`) ?? ''
  } catch {
    kept = false
    return ''
  }
}

/* Answers */

const answered = n => aspects.every(aspect => aspect in pressed[n])
const missing = () => keys.filter((_, n) => !answered(n)).length
const say = text => { element('said').textContent = text }

function answer (question, key) {
  if (!Object.hasOwn(page.answers[aspects[question]], key)) return
  pressed[at][aspects[question]] = key
  const open = aspects.findIndex(aspect => !(aspect in pressed[at]))
  if (question + 1 < aspects.length) show(at, question + 1)
  else if (open >= 0) show(at, open)
  else if (at + 1 < keys.length) show(at + 1)
  else show(at, question)
  say(missing() ? '' : 'Everything is answered. Download the file and send it back. Thank you!')
}

/* What is seen */

function show (n, question) {
  if (n < 0 || n >= keys.length) return
  if (n !== at) scrollTo(0, 0)
  at = n
  marked = question ?? Math.max(0, aspects.findIndex(aspect => !(aspect in pressed[n])))
  cards.forEach((card, number) => { card.hidden = number !== n })
  for (const near of [n, n + 1]) {
    for (const image of cards[near]?.querySelectorAll('img:not([src])') ?? []) {
      image.src = `data:image/webp;base64,${page.images[image.dataset.image]}`
    }
  }
  // the first question in the words of the task type
  if (cards[n].dataset.question) questions[0].querySelector('p').textContent = cards[n].dataset.question
  questions.forEach((one, number) => {
    one.classList.toggle('marked', number === marked && questions.length > 1)
    for (const button of one.querySelectorAll('button[data-key]')) {
      button.setAttribute('aria-pressed', String(pressed[n][aspects[number]] === button.dataset.key))
    }
  })
  const done = keys.length - missing()
  element('place').textContent = `${n + 1} of ${keys.length}`
  element('answered').textContent = `${done} answered${kept ? '' : ', not saved'}`
  element('progress').value = done
  element('back').disabled = n === 0
  element('next').disabled = n + 1 === keys.length
  keep()
}

function nextOpen () {
  const order = keys.map((_, step) => (at + 1 + step) % keys.length)
  const open = order.find(n => !answered(n))
  if (open === undefined) say('Everything is answered.')
  else show(open)
}

/* The file: what it names is matched as it stands, so a text is quoted as CSV asks and not otherwise changed. */

const cell = value => /[",;\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value)

function file () {
  const rows = [COLUMNS]
  keys.forEach(([benchmark, part, uid, generator, draw, swapped], n) => {
    for (const aspect of aspects.filter(aspect => aspect in pressed[n])) {
      const value = page.answers[aspect][pressed[n][aspect]]
      rows.push([benchmark, part, uid, generator, draw, rater, aspect, swapped ? OTHER_SIDE[value] ?? value : value])
    }
  })
  return rows.map(row => `${row.map(cell).join(',')}\n`).join('')
}

function download () {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([file()], { type: 'text/csv' }))
  link.download = `labels-${page.name}-${rater.replace(/[^\p{L}\p{N}]+/gu, '_')}.csv`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60000)
  const left = missing()
  say(left ? `Downloaded, but ${left} of ${keys.length} are unanswered.` : `Downloaded: all ${keys.length} are answered.`)
}

/* Hands */

element('who').addEventListener('submit', event => {
  event.preventDefault()
  const name = element('rater').value.trim()
  if (!name) return
  rater = name
  recall()
  element('name').textContent = rater
  element('start').hidden = true
  element('work').hidden = false
  document.activeElement?.blur()
  show(at)
})
element('other').addEventListener('click', () => {
  element('work').hidden = true
  element('start').hidden = false
  element('rater').value = ''
  element('rater').focus()
})
element('back').addEventListener('click', () => show(at - 1))
element('next').addEventListener('click', () => show(at + 1))
element('open').addEventListener('click', nextOpen)
element('download').addEventListener('click', download)
questions.forEach((one, number) => one.addEventListener('click', event => {
  const button = event.target.closest('button')
  if (button?.dataset.key) answer(number, button.dataset.key)
  else if (button) show(at, number)
}))

document.addEventListener('keydown', event => {
  if (element('work').hidden || event.ctrlKey || event.altKey || event.metaKey) return
  const letter = event.key.toLowerCase()
  const named = questions.findIndex(one => one.dataset.letter === letter)
  if (event.key === 'ArrowLeft') show(at - 1)
  else if (event.key === 'ArrowRight') show(at + 1)
  else if (letter === 'u') nextOpen()
  else if (letter === 'd') download()
  else if (letter === 'z') document.body.classList.toggle('full')
  else if (named >= 0) show(at, named)
  else if (/^[0-9]$/.test(event.key)) answer(marked, event.key)
  else return
  event.preventDefault()
})

// the same page in another tab
addEventListener('storage', event => {
  if (rater && event.key === place()) {
    const here = at
    recall()
    at = here
    show(at, marked)
  }
})
addEventListener('beforeunload', event => {
  if (!kept && pressed.some(one => Object.keys(one).length)) event.preventDefault()
})

element('rater').value = lastRater()
element('unkept').hidden = kept
