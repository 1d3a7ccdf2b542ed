// Seven tabs on one origin: more than a browser opens connections to one server. All of them follow the store.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { launch, open, until } from './browser.mjs';
import { startMock } from './mock.mjs';
import { done, test } from './tap.mjs';

const TABS = 7;
const { top_srcdir: source, top_builddir: build } = process.env;
const place = mkdtempSync(join(process.env.TMPDIR || tmpdir(), 'varve-tabs-'));
const busy = join(source, 'tests', 'web', 'busy.lua');
const env = { ...process.env, BAML_PROFILE_DIR: join(place, '.baml', 'profiles-v1') };

function serve(port) {
    const server = spawn(join(build, 'varve'), ['serve', place, '--no-index', '--listen', `127.0.0.1:${port}`], {
        stdio: ['ignore', 'pipe', 'ignore'],
    });
    let out = '';
    server.stdout.on('data', (data) => {
        out += data;
    });
    const ended = new Promise((resolve) => {
        server.on('exit', resolve);
    });
    return until('the server listens', () => {
        const match = /listening on (\S+)/.exec(out);
        return match && { server, ended, url: match[1].replace(/\/?$/, '/') };
    });
}

// Programs that run until their file is there.
const programs = [];
function record() {
    const stop = join(place, `stop-${programs.length}`);
    const program = spawn(join(build, 'varve-lua'), [busy, stop], { cwd: place, env, stdio: 'ignore' });
    const ended = new Promise((resolve) => {
        program.on('exit', resolve);
    });
    programs.push({
        async end() {
            writeFileSync(stop, '');
            await ended;
        },
    });
}

let { server, ended, url } = await serve(0);
const { browser, close } = await launch();
const tabs = [];
const faults = [];
let streams = 0;

const rows = (page) => page.locator('.runs tbody tr').count();
const all = (what, probe) =>
    Promise.all(tabs.map((page, i) => until(`tab ${i}: ${what}`, async () => (await probe(page)) || null)));

async function openTab(home) {
    const { page, faults: own } = await open(browser, home);
    page.on('request', (request) => {
        if (request.resourceType() === 'eventsource') streams++;
    });
    await page.goto(home);
    tabs.push(page);
    faults.push(own);
}

await test('seven tabs are told by one connection', async () => {
    for (let i = 0; i < TABS; i++) await openTab(url);
    await all('waits for a store', async (page) => (await page.locator('.empty h2').count()) === 1);
    await until('somebody follows', () => streams > 0 || null);
    record();
    await all('shows the run', async (page) => (await rows(page)) === 1);
    const calls = (page) => page.locator('.runs tbody tr td:nth-child(5)').innerText();
    const first = await Promise.all(tabs.map(calls));
    await all('counts on', async (page) => (await calls(page)) !== first[tabs.indexOf(page)]);
    await programs[0].end();
    await all('shows its end', async (page) =>
        (await page.locator('.runs .pill[data-status=succeeded]').count()) === 1
    );
    assert.equal(streams, 1);
});

await test('the tab that listens is closed, and another one listens', async () => {
    await tabs.shift().close();
    faults.shift();
    await until('another one follows', () => streams === 2 || null);
    record();
    await all('shows the second run', async (page) => (await rows(page)) === 2);
    await programs[1].end();
    await all('shows its end', async (page) =>
        (await page.locator('.runs .pill[data-status=succeeded]').count()) === 2
    );
    assert.equal(streams, 2);
    assert.deepEqual(faults.flat(), []);
});

await test('a server that ends, and comes back, is followed again', async () => {
    const { port } = new URL(url);
    server.kill();
    await ended;
    await all('is not connected', async (page) =>
        (await page.locator('.pulse').innerText()).includes('Not connected')
    );
    ({ server, ended } = await serve(port));
    record();
    await all('shows the third run', async (page) => (await rows(page)) === 3);
    await programs[2].end();
    await all('shows its end', async (page) =>
        (await page.locator('.runs .pill[data-status=succeeded]').count()) === 3
    );
});

await Promise.all(tabs.splice(0).map((page) => page.close()));
await Promise.all(programs.map((program) => program.end()));
server.kill();
await ended;
rmSync(place, { recursive: true, force: true });

for (const [following, name] of [
    ['polls', 'where no events come, a tab asks for each change'],
    ['none', 'where nobody may follow, tabs ask at intervals'],
]) {
    await test(name, async () => {
        const mock = await startMock();
        mock.state.following = following;
        for (let i = 0; i < 2; i++) await openTab(mock.url);
        await all('shows the runs', async (page) => (await rows(page)) === mock.state.runs.length);
        if (following === 'polls') await until('one asks', () => mock.state.followers.size === 1 || null);
        for (let i = 0; i < 2; i++) {
            mock.state.grow();
            const wanted = (mock.state.ticks * 6001).toLocaleString('en-US');
            await all('counts on', async (page) =>
                (await page.locator('.runs tbody tr td:nth-child(5)').allInnerTexts()).includes(wanted)
            );
        }
        assert.ok(mock.state.followers.size <= 1);
        await Promise.all(tabs.splice(0).map((page) => page.close()));
        mock.close();
    });
}

await close();
done();
