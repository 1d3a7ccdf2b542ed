// Debian's Chromium through playwright-core, and what every test of the page watches for.

import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const { chromium } = createRequire(join(process.env.VV_NODE_DIR || process.cwd(), 'package.json'))(
    'playwright-core'
);
const ARGS = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-dev-shm-usage',
];
const DEADLINE_MS = 20000;

/** Waits for a condition: the value that `probe` returns, once it is neither false, null nor undefined. */
export async function until(what, probe) {
    const end = Date.now() + DEADLINE_MS;
    for (;;) {
        const value = await probe();
        if (value !== false && value !== null && value !== undefined) return value;
        if (Date.now() > end) throw new Error(`timed out: ${what}`);
        await new Promise((resolve) => {
            setTimeout(resolve, 20);
        });
    }
}

/** A browser with a fresh profile of its own. */
export async function launch() {
    const profile = mkdtempSync(join(process.env.TMPDIR || tmpdir(), 'varve-chromium-'));
    const executablePath = process.env.CHROMIUM || '/usr/bin/chromium';
    const options = { executablePath, args: ARGS, viewport: { width: 1280, height: 800 }, timeout: 60000 };
    const context = await chromium.launchPersistentContext(profile, options);
    return {
        browser: context,
        async close() {
            await context.close();
            rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
        },
    };
}

/**
 * A page that remembers what it must not do: errors on the console, exceptions, requests to anywhere else.
 * @param {Object} browser
 * @param {string} home the only address it may talk to
 */
export async function open(browser, home) {
    const page = await browser.newPage();
    page.setDefaultTimeout(DEADLINE_MS);
    const faults = [];
    page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') faults.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`exception: ${error.stack || error}`));
    page.on('request', (request) => {
        if (!request.url().startsWith(home)) faults.push(`request to ${request.url()}`);
    });
    return { page, faults };
}

/** What the flame graph's canvas says of itself. */
export function flameState(page) {
    return page.evaluate(() => {
        const canvas = document.querySelector('canvas.flame');
        if (!canvas || canvas.dataset.boxes === undefined) return null;
        return { nodes: Number(canvas.dataset.nodes), boxes: Number(canvas.dataset.boxes), width: canvas.width };
    });
}

/** Waits for the flame graph to be drawn. */
export function drawn(page) {
    return until('the flame graph is drawn', async () => {
        const state = await flameState(page);
        return state && state.boxes > 0 ? state : null;
    });
}

/** The colour of the canvas at a place in CSS pixels, as [r, g, b]. */
export function pixel(page, x, y) {
    return page.evaluate(
        ([px, py]) => {
            const canvas = document.querySelector('canvas.flame');
            const ratio = canvas.width / canvas.clientWidth;
            const copy = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
            copy.drawImage(canvas, -Math.round(px * ratio), -Math.round(py * ratio));
            return [...copy.getImageData(0, 0, 1, 1).data.slice(0, 3)];
        },
        [x, y]
    );
}
