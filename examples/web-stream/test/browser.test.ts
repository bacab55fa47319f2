import { text, toolCall } from '@agents/core/testing';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { openDesk } from './desk.ts';

/** One browser for all tests; without one each of them fails, with what is to be done. */
let browser: Promise<Browser> | undefined;
let context: Promise<BrowserContext> | undefined;

function launch(): Promise<Browser> {
  const { TEST_CHROMIUM: executablePath, TEST_CHROMIUM_MISSING: missing } = process.env;
  if (missing !== undefined) throw new Error(missing);
  if (executablePath === undefined) throw new Error('TEST_CHROMIUM is to be the path of a Chromium.');
  return chromium.launch({ executablePath, args: ['--disable-gpu'] });
}

afterAll(async () => (await browser)?.close());

const steps = [[text('Let me look.'), toolCall('track_order', { orderId: '7' })], 'It is on its way.'];

/** The page in a tab of its own, and errors of its code. */
async function open(url: string) {
  browser ??= launch();
  context ??= browser.then((started) => started.newContext());
  const page = await (await context).newPage();
  onTestFinished(() => page.close());
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(url);
  return { page, problems };
}

async function ask(page: Page, message: string): Promise<void> {
  await page.fill('#message', message);
  await page.press('#message', 'Enter');
}

/** Waits until the page shows these lines and no others. */
const shows = (page: Page, ...lines: string[]): Promise<void> =>
  vi.waitFor(async () => expect(await page.locator('li').allTextContents()).toEqual(lines), 10_000);

const call = '→ track_order {"orderId":"7"}';

test('text is on the page while the run goes on; a reload goes on where it was', async () => {
  const desk = await openDesk(steps);
  const { page, problems } = await open(desk.url);
  await ask(page, 'Where is order 7?');
  await shows(page, 'Where is order 7?', 'Let me look.', call);
  expect(await page.isDisabled('#send')).toBe(true);

  await page.reload();
  await shows(page, 'Where is order 7?', 'Let me look.', call);
  desk.answer('shipped');
  await shows(page, 'Where is order 7?', 'Let me look.', call, '← shipped', 'It is on its way.');
  expect(await page.isVisible('#stop')).toBe(false);
  expect(desk.streams).toEqual(['address 0', 'address 6']);

  // What is over is shown, and asked for no more.
  await page.reload();
  await shows(page, 'Where is order 7?', 'Let me look.', call, '← shipped', 'It is on its way.');
  expect([desk.streams.length, desk.calls, problems]).toEqual([2, ['7', '7 ended'], []]);
});

test('a lost connection comes back with the last event that it had', async () => {
  const desk = await openDesk(steps);
  const { page } = await open(desk.url);
  await ask(page, 'Where is order 7?');
  await shows(page, 'Where is order 7?', 'Let me look.', call);
  desk.cut();
  await vi.waitFor(() => expect(desk.streams).toHaveLength(2), 10_000);
  desk.answer('shipped');
  await shows(page, 'Where is order 7?', 'Let me look.', call, '← shipped', 'It is on its way.');
  expect(desk.streams).toEqual(['address 0', 'header 6']);
});

test('the button stops the run, its tool too, and the next message starts another one', async () => {
  const desk = await openDesk([toolCall('track_order', { orderId: '7' }), 'You are welcome.']);
  const { page } = await open(desk.url);
  await ask(page, 'Where is order 7?');
  await shows(page, 'Where is order 7?', call);
  await page.click('#stop');
  await shows(page, 'Where is order 7?', call, 'Stopped.');
  expect(desk.calls).toEqual(['7', '7 ended']);
  await ask(page, 'Thanks.');
  await shows(page, 'Where is order 7?', call, 'Stopped.', 'Thanks.', 'You are welcome.');
});

test('text of people, models and tools is never markup, also after a reload', async () => {
  const attack = '<img src=x onerror="window.attacked = true"><script>window.attacked = true</script>';
  const args = { orderId: attack };
  const desk = await openDesk([[text(attack), toolCall('track_order', args)], attack]);
  desk.answer(attack);
  const { page } = await open(desk.url);
  const lines = [attack, attack, `→ track_order ${JSON.stringify(args)}`, `← ${attack}`, attack];
  await ask(page, attack);
  await shows(page, ...lines);
  await page.reload();
  await shows(page, ...lines);
  expect(await page.locator('#log img, #log script').count()).toBe(0);
  expect(await page.evaluate('window.attacked')).toBeUndefined();
});
