// The page against the stand-in server: everything a reader does, and the cases that are hard to record.

import assert from 'node:assert/strict';

import { drawn, flameState, launch, open, pixel, until } from './browser.mjs';
import { startMock, WEIRD_NAMES } from './mock.mjs';
import { done, test } from './tap.mjs';

const ROW = 22;
const mock = await startMock();
const { browser, close } = await launch();
const { page, faults } = await open(browser, mock.url);
const runOf = (name) => mock.state.runs.find((run) => run.row.entry_fqn === name);
const flameUrl = (name, rest = '') => `${mock.url}#/x/${runOf(name).row.execution_id}/flame${rest}`;
const tableUrl = (name) => `${mock.url}#/x/${runOf(name).row.execution_id}/functions`;

const text = (selector) => page.locator(selector).first().innerText();
const count = (selector) => page.locator(selector).count();
const hash = () => page.evaluate(() => decodeURIComponent(location.hash));
const query = async (key) => new URLSearchParams((await hash()).split('?')[1] || '').get(key);
const waitText = (selector, wanted) =>
    until(`${selector} says ${wanted}`, async () => {
        const found = await page.locator(selector).allInnerTexts();
        return found.some((value) => (wanted instanceof RegExp ? wanted.test(value) : value.includes(wanted)))
            ? found
            : null;
    });

// A fresh document each time: a changed hash alone would keep the last one.
async function go(url) {
    await page.goto('about:blank');
    await page.goto(url);
}

async function goFlame(name, rest) {
    await go(flameUrl(name, rest));
    // The head decides how much room the graph has.
    await page.locator('.run-title .pill').waitFor();
    await drawn(page);
    await settled();
    return flameState(page);
}

async function canvasBox() {
    return page.locator('canvas.flame').boundingBox();
}

// The middle of a frame of the given row, by where the stand-in's tree says it is: children stand widest first.
async function clickRow(row, part = 0.02) {
    const box = await canvasBox();
    await page.mouse.click(box.x + box.width * part, box.y + row * ROW + ROW / 2);
}

async function settled() {
    let before = null;
    return until('the zoom has come to rest', async () => {
        const now = JSON.stringify([
            await flameState(page),
            await hash(),
            await page.locator('.crumbs').innerText(),
        ]);
        const same = now === before;
        before = now;
        await page.evaluate(
            () =>
                new Promise((resolve) => {
                    requestAnimationFrame(() => requestAnimationFrame(resolve));
                })
        );
        return same;
    });
}

// The list

await test('the list shows every run, newest first, each state with its own look', async () => {
    await go(mock.url);
    await until('rows', async () => (await count('.runs tbody tr')) === mock.state.runs.length);
    const ids = await page.locator('.runs tbody tr').evaluateAll((rows) => rows.map((row) => row.dataset.id));
    assert.deepEqual(
        ids,
        mock.state.runs.map((run) => run.row.execution_id)
    );
    const looks = await page.locator('.pill').evaluateAll((pills) =>
        Object.fromEntries(
            pills.map((pill) => {
                const dot = getComputedStyle(pill.querySelector('.pill-dot'));
                const style = getComputedStyle(pill);
                return [
                    pill.innerText.trim(),
                    [style.color, style.backgroundColor, dot.borderRadius, dot.height, dot.transform].join(' '),
                ];
            })
        )
    );
    assert.deepEqual(Object.keys(looks).sort(), [
        'Abandoned',
        'Cancelled',
        'Failed',
        'Panicked',
        'Running',
        'Succeeded',
    ]);
    assert.equal(new Set(Object.values(looks)).size, 6);
    const verdicts = await page
        .locator('.badge')
        .evaluateAll((all) => all.map((badge) => [badge.innerText, badge.title]));
    assert.deepEqual([...new Set(verdicts.map(([label]) => label))].sort(), [
        'Complete',
        'Damaged',
        'Live',
        'Partial',
    ]);
    for (const [, title] of verdicts) assert.ok(title.length > 20);
    await waitText('.pulse', '1 running');
});

await test('the list searches, and says why it is empty', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('luac');
    await until('one row', async () => (await count('.runs tbody tr')) === 1);
    await until('the address has it', async () => (await query('q')) === 'luac');
    await page.keyboard.type('zzz');
    await waitText('.empty h2', 'No run matches');
    await page.locator('.empty button').click();
    await until('all rows', async () => (await count('.runs tbody tr')) === mock.state.runs.length);
    await page.locator('select').selectOption('failed');
    await until('one row', async () => (await count('.runs tbody tr')) === 1);
    await page.locator('select').selectOption('');
    await until('all rows', async () => (await count('.runs tbody tr')) === mock.state.runs.length);
});

await test('a live list changes in place and keeps the focus', async () => {
    const link = page.locator('.runs tbody tr a').nth(2);
    await link.focus();
    await page.evaluate(() => {
        document.querySelector('.runs tbody tr').dataset.mine = 'kept';
    });
    const before = await text('.runs tbody tr td:nth-child(5)');
    mock.state.grow();
    await until('more calls', async () => (await text('.runs tbody tr td:nth-child(5)')) !== before);
    assert.equal(await page.evaluate(() => document.querySelector('.runs tbody tr').dataset.mine), 'kept');
    assert.equal(await link.evaluate((el) => el === document.activeElement), true);
    await page.keyboard.press('ArrowDown');
    assert.equal(
        await page
            .locator('.runs tbody tr a')
            .nth(3)
            .evaluate((el) => el === document.activeElement),
        true
    );
});

await test('an unchanged store costs a 304', async () => {
    await until('a 304', () => mock.log.some((line) => line.startsWith('304 /api/v1/executions')) || null);
});

await test('no store, and a store without runs, have words of their own', async () => {
    mock.state.scene = 'no-runs';
    mock.state.touch();
    await waitText('.empty h2', 'No runs yet');
    await waitText('.empty code', 'varve-lua script.lua');
    mock.state.scene = 'no-store';
    mock.state.touch();
    await go(mock.url);
    await waitText('.empty h2', 'No store here yet');
    mock.state.scene = 'full';
    mock.state.touch();
    await until('rows', async () => (await count('.runs tbody tr')) === mock.state.runs.length);
});

await test('a change is told: nobody asks whether there is one', async () => {
    await go(mock.url);
    await page.locator('.runs tbody tr').first().waitFor();
    await until('somebody follows', () => mock.state.followers.size === 1 || null);
    const asked = () => mock.log.filter((line) => line.includes('/api/v1/executions')).length;
    for (let i = 0; i < 3; i++) {
        const before = asked();
        mock.state.grow();
        await until('it is asked for', () => asked() > before || null);
        await waitText('.runs tbody tr td:nth-child(5)', (mock.state.ticks * 6001).toLocaleString('en-US'));
    }
});

await test('a hidden tab asks for nothing', async () => {
    const { page: other, faults: none } = await open(browser, mock.url);
    await other.clock.install();
    await other.goto(mock.url);
    await other.locator('.runs tbody tr').first().waitFor();
    const asked = () => mock.log.length;
    const hide = (hidden) =>
        other.evaluate((value) => {
            Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
            document.dispatchEvent(new Event('visibilitychange'));
        }, hidden);
    await page.goto('about:blank');
    await hide(true);
    const before = asked();
    await other.clock.runFor(60000);
    for (let i = 0; i < 3; i++) mock.state.touch();
    await other.clock.runFor(60000);
    assert.ok(asked() - before <= 1, `${asked() - before} requests while hidden`);
    const then = asked();
    await hide(false);
    await until('asking again', () => asked() > then || null);
    assert.deepEqual(none, []);
    await other.close();
});

await test('a click on a row opens the run, and back returns', async () => {
    await go(mock.url);
    await page.locator('.runs tbody tr', { hasText: 'luacheck' }).locator('td').nth(3).click();
    await drawn(page);
    await waitText('h1.title', 'luacheck.lua');
    assert.match(await hash(), /\/flame$/);
    await page.goBack();
    await page.locator('.runs tbody tr').first().waitFor();
});

// The flame graph

await test('a click zooms, the address tells it, Escape leaves', async () => {
    const all = await goFlame('luacheck');
    assert.ok(all.boxes > 100);
    await clickRow(3);
    await until('zoomed', async () => (await query('root')) !== null);
    await settled();
    assert.equal(await count('.crumbs button'), 4);
    const zoomed = await flameState(page);
    assert.ok(zoomed.boxes < all.boxes, `${zoomed.boxes} of ${all.boxes}`);
    const root = await query('root');
    await page.reload();
    await drawn(page);
    await settled();
    assert.equal(await query('root'), root);
    assert.equal(await count('.crumbs button'), 4);
    await page.keyboard.press('Escape');
    await until('unzoomed', async () => (await query('root')) === null);
    await settled();
    assert.equal((await flameState(page)).boxes, all.boxes);
    await page.goBack();
    await until('zoomed again', async () => (await query('root')) === root);
});

await test('the breadcrumb leads to each caller', async () => {
    await goFlame('luacheck');
    await clickRow(4);
    await settled();
    await page.locator('.crumbs button').nth(2).click();
    await until('two callers', async () => (await count('.crumbs button')) === 2);
    await page.locator('.crumbs button').first().click();
    await until('all', async () => (await query('root')) === null);
});

await test('search marks, sums and leaves by Escape before the zoom does', async () => {
    await goFlame('luacheck');
    await clickRow(1);
    await until('zoomed', async () => (await query('root')) !== null);
    await page.keyboard.press('/');
    await page.keyboard.type('parse');
    await waitText('.matched', /^(\u2265 )?\d+(\.\d+)? % matched$/);
    await until('the address has it', async () => (await query('q')) === 'parse');
    await waitText('.matched', 'matched');
    await page.keyboard.press('Escape');
    await until('search cleared', async () => (await query('q')) === null);
    assert.notEqual(await query('root'), null);
    assert.equal(await text('.matched'), '');
    await page.keyboard.press('Escape');
    await until('zoom left', async () => (await query('root')) === null);
    await page.keyboard.press('/');
    await page.keyboard.type('no such frame');
    await waitText('.matched', 'No match');
});

await test('the matched share counts a match under a match once', async () => {
    await goFlame('deep', '?q=recurse');
    const share = (4999 / 5000) * 100;
    await waitText('.matched', share >= 99.95 ? '100 % matched' : `${share.toFixed(1)} % matched`);
});

await test('arrow keys walk the frames, Enter zooms, and each step is said', async () => {
    await goFlame('coroutines');
    await page.locator('canvas.flame').focus();
    await page.keyboard.press('ArrowDown');
    await waitText('.detail strong', 'main chunk');
    await page.keyboard.press('ArrowDown');
    await waitText('.detail strong', 'consumer');
    await waitText('.detail-notes', 'spawned');
    await page.keyboard.press('ArrowRight');
    await waitText('.detail strong', 'coroutine.resume');
    assert.match(
        await text('#announcer'),
        /coroutine\.resume: inclusive time 5\.10 ms, .* of total, .* of its caller, 40 calls/
    );
    await page.keyboard.press('ArrowLeft');
    await waitText('.detail strong', 'consumer');
    await page.keyboard.press('ArrowUp');
    await waitText('.detail strong', 'main chunk');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await until('zoomed', async () => (await query('root')) !== null);
});

await test('the tooltip tells the exact numbers', async () => {
    await goFlame('coroutines');
    const box = await canvasBox();
    await page.mouse.move(box.x + box.width * 0.93, box.y + ROW * 1.5);
    await waitText('.tip-name', 'coroutine.resume');
    const figures = await page
        .locator('.tip .figures div')
        .evaluateAll((rows) =>
            Object.fromEntries(
                rows.map((row) => [row.querySelector('dt').textContent, row.querySelector('dd').textContent])
            )
        );
    assert.deepEqual(figures, {
        'Of total': '71.8 %',
        'Of parent': '71.8 %',
        Calls: '40',
        Inclusive: '5.10 ms',
        Self: '100 \u00b5s',
        Await: '5.00 ms',
        Errors: '0',
    });
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height - 5);
    await until('no tooltip', async () => page.locator('.tip').isHidden());
});

await test('each metric has its own graph, and words where it has nothing', async () => {
    await goFlame('coroutines');
    for (const metric of ['self_ns', 'await_ns', 'calls', 'errors']) {
        await page.locator(`[data-metric=${metric}]`).click();
        await until(metric, async () => (await query('metric')) === metric);
        await page.locator(`[data-metric=${metric}][aria-checked=true]`).waitFor();
    }
    await waitText('.total', 'Errors: 3 in all');
    await go(flameUrl('deep', '?metric=errors'));
    await waitText('.flame-message h2', 'No call ended with an error');
    await page.locator('[data-metric=calls]').click();
    await waitText('.total', 'Calls: 5,000 in all');
});

await test('zooming asks for what was folded', async () => {
    const before = await goFlame('folding');
    mock.log.length = 0;
    await clickRow(5);
    await until('zoomed', async () => (await query('root')) !== null);
    const root = await query('root');
    await until('asked for the subtree', () => mock.log.some((line) => line.includes(`root=${root}`)) || null);
    await settled();
    assert.ok((await flameState(page)).boxes > 30);
    assert.equal(await count('.crumbs button'), 6);
    await page.keyboard.press('Escape');
    await until('unzoomed', async () => (await query('root')) === null);
    await settled();
    assert.equal((await flameState(page)).boxes, before.boxes);
});

await test('100,000 frames can be pointed at and zoomed', async () => {
    const state = await goFlame('large');
    assert.equal(state.nodes, 100000);
    const box = await canvasBox();
    for (let i = 0; i < 20; i++) await page.mouse.move(box.x + 20 + i * 40, box.y + 30 + i * 5);
    await clickRow(4);
    await settled();
    assert.equal(await count('.crumbs button'), 5);
});

await test('a stack of 5,000 frames scrolls', async () => {
    await goFlame('deep');
    await page.locator('.flame-scroll').evaluate((el) => {
        el.scrollTop = el.scrollHeight;
    });
    const box = await canvasBox();
    await page.mouse.move(box.x + 1, box.y + box.height - 30);
    await page.keyboard.press('ArrowDown');
    await waitText('.detail strong', 'main chunk');
    assert.equal(await page.locator('.flame-scroll').evaluate((el) => el.scrollTop), 0);
});

await test('odd names are text, never markup', async () => {
    await goFlame(WEIRD_NAMES[0]);
    const box = await canvasBox();
    for (let i = 0; i < WEIRD_NAMES.length + 1; i++) {
        await page.mouse.move(box.x + box.width * ((i + 0.5) * (2 / 27)), box.y + ROW * 1.5);
        await until('a tooltip', async () => page.locator('.tip').isVisible());
    }
    await page.locator('[data-tab=functions]').click();
    await until('rows', async () => (await count('.functions tbody tr[data-index]')) === WEIRD_NAMES.length + 2);
    await waitText('.fn-name', '<img src=x onerror=');
    await waitText('.fn-name', '(no name)');
    await waitText('.fn-name', 'new\u240aline');
    await go(mock.url);
    await page.locator('.runs tbody tr').first().waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await count('main img'), 0);
});

await test('numbers above 2^53 stay exact', async () => {
    await goFlame('');
    assert.equal(await text('[data-fact=calls]'), '18,446,744,073,709,551,615');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await waitText('.detail .figures', '18,446,744,073,709,551,614');
    await page.locator('[data-tab=functions]').click();
    await waitText('.functions tbody', '18,446,744,073,709,551,614');
});

await test('missing evidence is said in words', async () => {
    await goFlame('damaged');
    await waitText('.banner', /Damaged\./);
    await waitText('.banner', 'a segment of the recording is missing (7, 8)');
    await waitText('.banner', 'span starts: 120 on one side, 118 on the other');
    await waitText('.banner', '2 more issues');
    await goFlame('overflowing');
    await waitText('.banner', '12,345 calls counted without a path');
    await waitText('.banner', 'records of single calls dropped, as their queue was full: 3');
    await goFlame('luacheck');
    await waitText('h1.title', 'luacheck');
    assert.equal(await page.locator('.banner').isHidden(), true);
});

await test('an empty run says so', async () => {
    await go(flameUrl('empty'));
    await waitText('.flame-message h2', 'No calls');
    await page.locator('[data-tab=functions]').click();
    await waitText('.flame-message h2', 'No calls');
});

// The table

await test('the table sorts by every column', async () => {
    await go(tableUrl('luacheck'));
    await page.locator('.functions tbody tr[data-index]').first().waitFor();
    const sorted = () =>
        page
            .locator('.functions th:not([aria-sort=none])')
            .evaluateAll((all) => all.map((th) => [th.dataset.col, th.getAttribute('aria-sort')]));
    assert.deepEqual(await sorted(), [['self_ns', 'descending']]);
    for (const column of ['calls', 'inclusive_ns', 'await_ns', 'errors', 'contexts']) {
        await page.locator(`th[data-col=${column}] button`).click();
        assert.deepEqual(await sorted(), [[column, 'descending']]);
    }
    const errors = () =>
        page
            .locator('.functions tbody td[data-col=errors]')
            .evaluateAll((all) => all.map((td) => Number(td.innerText)));
    await page.locator('th[data-col=errors] button').click();
    const down = await errors();
    assert.deepEqual(
        down,
        [...down].sort((a, b) => b - a)
    );
    await page.locator('th[data-col=errors] button').click();
    const up = await errors();
    assert.deepEqual(
        up,
        [...up].sort((a, b) => a - b)
    );
    await page.locator('th[data-col=name] button').click();
    assert.deepEqual(await sorted(), [['name', 'ascending']]);
    const names = await page.locator('.fn-name').allInnerTexts();
    assert.deepEqual(names, [...names].sort());
});

await test('the table filters, and a click leads to the frames', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('string.');
    await waitText('.count', /^\d+ of \d+ functions$/);
    const name = await text('.fn-name');
    assert.match(name, /^string\./);
    await page.locator('.functions tbody tr[data-index]').first().click();
    await drawn(page);
    assert.equal(await query('q'), name);
    await waitText('.matched', /matched$/);
});

await test('the table draws only the rows in view', async () => {
    await go(tableUrl('large'));
    await waitText('.count', '400 functions');
    assert.ok((await count('.functions tbody tr[data-index]')) < 80);
    await page.locator('.table-scroll').evaluate((el) => {
        el.scrollTop = el.scrollHeight;
    });
    await page.locator('.functions tbody tr[data-index="399"]').waitFor();
    const { bottom, end } = await page.evaluate(() => ({
        bottom: document.querySelector('tr[data-index="399"]').getBoundingClientRect().bottom,
        end: document.querySelector('.table-scroll').getBoundingClientRect().bottom,
    }));
    assert.ok(Math.abs(bottom - end) < 2, `${bottom} ${end}`);
});

// The whole page

await test('light and dark, by the system and by choice', async () => {
    await goFlame('luacheck');
    const light = await pixel(page, 600, 10);
    await page.emulateMedia({ colorScheme: 'dark' });
    await until('dark', async () => (await pixel(page, 600, 10)).join() !== light.join());
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('#theme').click();
    await until('dark by choice', async () =>
        page.evaluate(() => document.documentElement.dataset.theme === 'dark')
    );
    await page.reload();
    await drawn(page);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await page.locator('#theme').click();
    assert.equal(await page.evaluate(() => localStorage.length), 0);
});

await test('the canvas follows the window, in whole device pixels', async () => {
    await goFlame('luacheck');
    await page.setViewportSize({ width: 700, height: 600 });
    await until('narrow', async () => (await flameState(page)).width === 700);
    const client = await page.context().newCDPSession(page);
    await client.send('Emulation.setDeviceMetricsOverride', {
        width: 701,
        height: 600,
        deviceScaleFactor: 2,
        mobile: false,
    });
    await until('dense', async () => (await flameState(page)).width === 1402);
    await client.send('Emulation.clearDeviceMetricsOverride');
    await page.setViewportSize({ width: 1280, height: 800 });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
});

await test('without motion a zoom is there at once', async () => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const all = await goFlame('luacheck');
    await clickRow(3);
    await until('zoomed', async () => (await query('root')) !== null);
    const frames = await page.evaluate(
        () =>
            new Promise((resolve) => {
                requestAnimationFrame(() =>
                    requestAnimationFrame(() => resolve(Number(document.querySelector('canvas').dataset.boxes)))
                );
            })
    );
    assert.ok(frames < all.boxes);
    await page.emulateMedia({ reducedMotion: 'no-preference' });
});

await test('the keys are listed by ?', async () => {
    await page.keyboard.press('?');
    await page.locator('dialog[open]').waitFor();
    await page.keyboard.press('Escape');
    await until('closed', async () => (await count('dialog[open]')) === 0);
    await page.keyboard.press('t');
    await page.locator('.functions').waitFor();
    await page.keyboard.press('f');
    await drawn(page);
});

await test('every control has a name, every tab a panel', async () => {
    const nameless = await page
        .locator('button, a, input, select, canvas')
        .evaluateAll((all) =>
            all
                .filter((el) => el.offsetParent && !(el.innerText || '').trim() && !el.getAttribute('aria-label'))
                .map((el) => el.outerHTML)
        );
    assert.deepEqual(nameless, []);
    assert.equal(await page.locator('[role=tab][aria-selected=true]').getAttribute('aria-controls'), 'panel');
});

await test('a running run grows, and keeps zoom and selection', async () => {
    await goFlame('growing');
    await page.locator('canvas.flame').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await waitText('.detail strong', 'loop');
    await page.keyboard.press('Enter');
    await until('zoomed', async () => (await query('root')) !== null);
    await waitText('.pulse', 'Live');
    const calls = await text('[data-fact=calls]');
    const loop = await text('.detail .figures');
    mock.state.grow();
    await until('more calls', async () => (await text('[data-fact=calls]')) !== calls);
    await until('a larger frame', async () => (await text('.detail .figures')) !== loop);
    await waitText('.detail strong', 'loop');
    assert.notEqual(await query('root'), null);
    await page.locator('[data-tab=functions]').click();
    await waitText('.fn-name', 'loop');
    const cell = await text('.functions tbody tr[data-index="0"] td:nth-child(2)');
    mock.state.grow();
    await until(
        'more calls in the table',
        async () => (await text('.functions tbody tr[data-index="0"] td:nth-child(2)')) !== cell
    );
    mock.state.end();
    await waitText('.pill', 'Succeeded');
    await until('not live', async () => (await text('.pulse')) === '');
});

await test('what other programs record does not fetch this run again', async () => {
    await goFlame('luacheck');
    await waitText('h1.title', 'luacheck');
    mock.log.length = 0;
    mock.state.touch();
    const asked = () => mock.log.filter((line) => line.startsWith('200 /api/v1/executions/')).length;
    await until('the summary was asked for', () => asked() > 0 || null);
    mock.state.touch();
    await until('the summary was asked for again', () => asked() > 1 || null);
    assert.deepEqual(
        mock.log.filter((line) => line.includes('/flame')),
        []
    );
});

await test('nothing on the console, no request to elsewhere', () => {
    assert.deepEqual(faults, []);
});

await test('a run that is not there, and a server that goes away', async () => {
    await go(`${mock.url}#/x/no-such-run/flame`);
    await waitText('.empty h2', 'No such run');
    await goFlame('luacheck');
    await waitText('h1.title', 'luacheck');
    mock.close();
    await waitText('.pulse', 'Not connected');
    assert.ok((await flameState(page)).boxes > 100);
});

await close();
done();
