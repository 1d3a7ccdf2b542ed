// The page against the real server, on recordings that the real Lua host makes.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { drawn, flameState, launch, open, until } from './browser.mjs';
import { done, test } from './tap.mjs';

const ROW = 22;
const { top_srcdir: source, top_builddir: build } = process.env;
const place = mkdtempSync(join(process.env.TMPDIR || tmpdir(), 'varve-real-'));
const store = join(place, '.baml', 'profiles-v1');
const stopFile = join(place, 'stop');
const busy = join(source, 'tests', 'web', 'busy.lua');
const shots = process.env.VV_NODE_DIR;
const env = { ...process.env, BAML_PROFILE_DIR: store, LUA_PATH: luaPath() };

function luaPath() {
    return ['5.4', '5.1'].flatMap((v) => [`/usr/share/lua/${v}/?.lua`, `/usr/share/lua/${v}/?/init.lua`]).join(';');
}

// The demonstration's run where its packages are installed, else the other program, stopped from the start.
function record() {
    const sources = ['/usr/share/lua/5.4/pl', '/usr/share/lua/5.1/pl'].find(existsSync);
    const demo = existsSync('/usr/bin/luacheck') && sources;
    const args = demo
        ? ['/usr/bin/luacheck', '--no-color', '-q', join(sources, 'List.lua'), join(sources, 'class.lua')]
        : [busy, '/'];
    const { status, stderr } = spawnSync(join(build, 'varve-lua'), args, { cwd: place, env, encoding: 'utf8' });
    // luacheck itself says by its status that it found something to warn of.
    assert.ok(status === 0 || status === 1, `varve-lua: ${status} ${stderr}`);
}

function serve() {
    const server = spawn(join(build, 'varve'), ['serve', place, '--listen', '127.0.0.1:0'], {
        stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    server.stdout.on('data', (data) => {
        out += data;
    });
    return until('the server listens', () => {
        const match = /listening on (\S+)/.exec(out);
        return match && { server, url: match[1].replace(/\/?$/, '/') };
    });
}

const { server, url } = await serve();
const { browser, close } = await launch();
const { page, faults } = await open(browser, url);
const api = async (path) => (await fetch(`${url}api/v1/${path}`)).json();
const text = (selector) => page.locator(selector).first().innerText();
const grouped = (value) => BigInt(value).toLocaleString('en-US');
const query = async (key) =>
    new URLSearchParams((await page.evaluate(() => location.hash)).split('?')[1] || '').get(key);
const waitText = (selector, wanted) =>
    until(`${selector} says ${wanted}`, async () => {
        const found = await page.locator(selector).allInnerTexts();
        return found.some((value) => value.includes(wanted)) ? found : null;
    });

let run = null;

await test('a server that waits for a store says so, and shows the first run by itself', async () => {
    await page.goto(url);
    await waitText('.empty h2', 'No store here yet');
    record();
    await page.locator('.runs tbody tr').first().waitFor();
    [run] = (await api('executions')).items;
});

await test('the list shows the recorded run', async () => {
    assert.equal(await text('.runs td.id code'), run.short_id);
    await waitText('.runs tbody tr td:nth-child(5)', grouped(run.total_calls));
    await waitText('.runs .badge', 'Complete'); /* the first state that it shows may be an earlier one */
    await page.screenshot({ path: join(shots, 'list.png') });
});

await test('a click opens it as a flame graph', async () => {
    await page.locator('.runs tbody tr').first().click();
    const state = await drawn(page);
    const width = await page.evaluate(() => Math.round(screen.width * devicePixelRatio));
    const answer = await api(`flame?execution=${run.execution_id}&metric=inclusive_ns&width=${width}`);
    assert.equal(state.nodes, answer.nodes.length);
    await waitText('[data-fact=calls]', grouped(run.total_calls));
    await page.screenshot({ path: join(shots, 'flame.png') });
});

await test('a click zooms, / searches, Escape leaves', async () => {
    const before = (await flameState(page)).boxes;
    const box = await page.locator('canvas.flame').boundingBox();
    await page.mouse.click(box.x + 5, box.y + ROW * 3.5);
    await until('zoomed', async () => (await query('root')) !== null);
    await page.locator('.crumbs button').nth(1).waitFor();
    const [name] = (await page.locator('.crumbs [aria-current]').innerText()).split(':').slice(-1);
    await page.keyboard.press('/');
    await page.keyboard.type(name);
    await waitText('.matched', 'matched');
    await page.screenshot({ path: join(shots, 'zoom.png') });
    await page.keyboard.press('Escape');
    await until('search cleared', async () => (await query('q')) === null);
    await page.keyboard.press('Escape');
    await until('zoom left', async () => (await query('root')) === null);
    await until('all frames', async () => Math.abs((await flameState(page)).boxes - before) <= 2);
});

await test('every metric is drawn or says that it has nothing', async () => {
    for (const metric of ['self_ns', 'await_ns', 'calls', 'errors', 'inclusive_ns']) {
        await page.locator(`[data-metric=${metric}]`).click();
        await page.locator(`[data-metric=${metric}][aria-checked=true]`).waitFor();
        const label = {
            self_ns: 'Self time',
            await_ns: 'Await',
            calls: 'Calls',
            errors: 'Errors',
            inclusive_ns: 'Inclusive time',
        }[metric];
        await waitText('.total', `${label}:`);
    }
    await page.locator('[data-metric=calls]').click();
    await waitText('.total', `Calls: ${grouped(run.total_calls)} in all`);
});

await test('the table shows every function, most self time first', async () => {
    await page.locator('[data-tab=functions]').click();
    await page.locator('.functions tbody tr[data-index]').first().waitFor();
    const answer = await api(`functions?execution=${run.execution_id}&limit=1000`);
    const most = [...answer.items].sort((a, b) => Number(b.self_ns) - Number(a.self_ns))[0];
    assert.equal(await text('.fn-name'), most.name);
    assert.equal(await text('.functions tbody tr[data-index="0"] td:nth-child(2)'), grouped(most.calls));
    if (!answer.next) await waitText('.count', `${grouped(answer.items.length)} function`);
    await page.screenshot({ path: join(shots, 'table.png') });
});

await test('numbers grow while a program runs, and stand when it ends', async () => {
    await page.goto(url);
    const program = spawn(join(build, 'varve-lua'), [busy, stopFile], { cwd: place, env, stdio: 'ignore' });
    const ended = new Promise((resolve) => {
        program.on('exit', resolve);
    });
    try {
        await page.locator('.pill[data-status=running]').waitFor();
        await waitText('.pulse', '1 running');
        await page.locator('.runs tbody tr', { hasText: 'Running' }).click();
        await drawn(page);
        const calls = async () => Number((await text('[data-fact=calls]')).replace(/\D/g, '')) || null;
        const first = await until('calls', calls);
        await until('more calls', async () => (await calls()) > first);
        await page.locator('[data-metric=calls]').click();
        const total = await until('a total', async () => (await text('.total')).match(/Calls: (\S+)/)?.[1]);
        await until(
            'a larger graph',
            async () => (await text('.total')).includes('Calls:') && !(await text('.total')).includes(` ${total} `)
        );
        await page.screenshot({ path: join(shots, 'live.png') });
    } finally {
        writeFileSync(stopFile, '');
        await ended;
    }
    await page.locator('.pill[data-status=succeeded]').waitFor();
    const last = (await api('executions')).items[0];
    await waitText('[data-fact=calls]', grouped(last.total_calls));
    await waitText('.total', `Calls: ${grouped(last.total_calls)} in all`);
});

await test('nothing on the console, no request to elsewhere', () => {
    assert.deepEqual(faults, []);
});

await close();
server.kill();
rmSync(place, { recursive: true, force: true });
done();
