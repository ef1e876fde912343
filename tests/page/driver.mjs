// Drives one chromium for browser.py: a JSON object a line in, and for each a line out, {"found": ...} or {"error": "..."}.
import { createRequire } from 'node:module'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'

const [tools, chromiumPath] = process.argv.slice(2)
const require = createRequire(`${tools}/`)
const { chromium } = require('playwright-core')

const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
]
const STORAGE = 'JSON.stringify(Object.entries(localStorage).sort())'
const PATIENCE = 60_000  // milliseconds: a machine may be busy

// Playwright gives the browser a new, empty user-data-dir and removes it
const browser = await chromium.launch({ executablePath: chromiumPath, headless: true, args: FLAGS, timeout: 120_000 })
let context, page, requested, complaints

function listen (one) {
  one.setDefaultTimeout(PATIENCE)
  one.on('request', request => { if (!/^(data|blob):/.test(request.url())) requested.push(request.url()) })
  one.on('console', message => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()) })
  one.on('pageerror', error => complaints.push(String(error)))
}

// keys go where a page wants them only after it has been drawn, which is when it gives its focus away
async function goTo (address) {
  await page.goto(address)
  await page.bringToFront()
  await page.evaluate('new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
}

const can = {
  async open ({ address, width, height, scheme, touch, offline }) {
    await context?.close()
    requested = []
    complaints = []
    context = await browser.newContext({
      viewport: { width, height }, colorScheme: scheme, hasTouch: touch, isMobile: touch, offline, acceptDownloads: true,
      reducedMotion: 'reduce',
    })
    page = await context.newPage()
    listen(page)
    await goTo(address)
  },
  // what a page writes reaches the browser some time later, and not for certain once its process has ended: another page,
  // open until the new one is, has to see it before this one is closed. Both are asked anew each time, and the witness
  // looks anew: this one may still be writing, and what a page has read of its storage may stay as it was
  async reopen ({ address }) {
    const witness = await context.newPage()
    await witness.goto(address)
    for (const end = Date.now() + PATIENCE; await witness.evaluate(STORAGE) !== await page.evaluate(STORAGE);) {
      if (Date.now() > end) throw new Error('what the page kept does not reach the browser')
      await witness.waitForTimeout(50)
      await witness.reload()
    }
    await page.close()
    page = await context.newPage()
    listen(page)
    await goTo(address)
    await witness.close()
    await page.bringToFront()
  },
  async press ({ keys }) { for (const key of keys) await page.keyboard.press(key) },
  async type ({ text }) { await page.keyboard.type(text) },
  async click ({ selector }) { await page.locator(selector).first().click() },
  async text ({ selector }) { return await page.locator(selector).first().innerText() },
  async visible ({ selector }) { return await page.locator(selector).first().isVisible() },
  async evaluate ({ expression }) { return (await page.evaluate(expression)) ?? null },
  async download ({ selector, keys }) {
    const begun = page.waitForEvent('download', { timeout: PATIENCE })
    if (selector) await can.click({ selector })
    else await can.press({ keys })
    const download = await begun
    return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') }
  },
  async violations () {
    await page.evaluate(await readFile(require.resolve('axe-core/axe.min.js'), 'utf8'))
    const { violations } = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')
    return violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, where: nodes.map(node => node.target.join(' ')) }))
  },
  async screenshot ({ file, whole }) { await page.screenshot({ path: file, fullPage: whole }) },
  async media ({ media }) { await page.emulateMedia({ media }) },
  async print ({ file }) { await page.pdf({ path: file }) },
  // of all of the browser's processes
  async cpu () {
    const session = await browser.newBrowserCDPSession()
    const { processInfo } = await session.send('SystemInfo.getProcessInfo')
    await session.detach()
    return processInfo.reduce((sum, process) => sum + process.cpuTime, 0)
  },
  async requested () { return requested },
  async complaints () { return complaints },
}

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line)
  let answer
  try {
    answer = { found: (await can[command](given)) ?? null }
  } catch (error) {
    answer = { error: String(error) }
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
await browser.close()
