// The HTTP API: fetching with ETags, problems as errors, and asking again when the store changed and somebody looks.

import { takeEarly } from './early.js';
import { isFollowing, onChange } from './follow.js';

/** A request that failed: the server's problem document, or a server that does not answer (status 0). */
export class ApiError extends Error {
    constructor(status, problem) {
        super(problem.detail || problem.title || `HTTP ${status}`);
        this.status = status;
        this.problem = problem;
    }
}

function urlOf(path, params) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(params || {})) {
        if (value !== undefined && value !== null && value !== '') query.append(key, value);
    }
    const text = query.toString();
    return text ? `${path}?${text}` : path;
}

async function problemOf(response) {
    try {
        return await response.json();
    } catch {
        return { title: `The server answered ${response.status} ${response.statusText}` };
    }
}

/** One address that is asked again and again; unchanged answers cost a 304. */
export class Resource {
    /**
     * @param {string} path
     * @param {Object<string, *>} [params] empty ones are left out
     */
    constructor(path, params) {
        this.url = urlOf(path, params);
        this.etag = null;
    }

    /**
     * @param {AbortSignal} [signal]
     * @returns {Promise<{changed: boolean, data: *}>} data is null where nothing changed
     * @throws {ApiError}
     */
    async fetch(signal) {
        const headers = { Accept: 'application/json' };
        if (this.etag) headers['If-None-Match'] = this.etag;
        let response;
        try {
            const options = { headers, signal, cache: 'no-store', credentials: 'same-origin' };
            response = await (takeEarly(this.url) || fetch(this.url, options));
        } catch (error) {
            if (error.name === 'AbortError') throw error;
            throw new ApiError(0, {
                title: 'The server does not answer',
                detail: 'varve serve is not running, or cannot be reached. This page tries again by itself.',
            });
        }
        if (response.status === 304) return { changed: false, data: null };
        if (!response.ok) throw new ApiError(response.status, await problemOf(response));
        const data = await response.json();
        this.etag = response.headers.get('ETag');
        return { changed: true, data };
    }
}

/** Fetches once. */
export async function get(path, params, signal) {
    return (await new Resource(path, params).fetch(signal)).data;
}

const BACKOFF_MS = 10000;
// While changes are told, for what may go untold all the same.
const FOLLOWED_MS = 30000;
const PAUSE_MS = 250;

/**
 * Runs a task now and again when the store has changed, or, where that is not told, after each `interval()`
 * milliseconds; never twice at once, and not while the tab is hidden. A failing task waits longer each time; a store
 * that changes without pause is asked for at most half of the time.
 * @param {(signal: AbortSignal) => Promise<void>} task
 * @param {() => number} interval
 * @param {(error: Error|null) => void} report called after each run
 */
export function poll(task, interval, report) {
    const abort = new AbortController();
    let timer = 0;
    let running = false;
    let again = false;
    let told = false;
    let failures = 0;
    let began = 0;
    let took = 0;

    const rest = () => Math.max(0, began + Math.max(PAUSE_MS, 2 * took) - performance.now());

    function next() {
        if (again) return 0;
        if (told) return rest();
        if (failures) return Math.min(BACKOFF_MS, interval() * 2 ** Math.min(failures, 4));
        return isFollowing() ? FOLLOWED_MS : interval();
    }

    async function run() {
        clearTimeout(timer);
        if (running) {
            again = true;
            return;
        }
        running = true;
        again = false;
        told = false;
        began = performance.now();
        try {
            await task(abort.signal);
            failures = 0;
            if (!abort.signal.aborted) report(null);
        } catch (error) {
            if (abort.signal.aborted) return;
            failures++;
            report(error);
        } finally {
            running = false;
            took = performance.now() - began;
        }
        if (abort.signal.aborted || document.hidden) return;
        timer = setTimeout(run, next());
    }

    function onVisibility() {
        if (document.hidden) clearTimeout(timer);
        else run();
    }

    const unfollow = onChange(() => {
        told = true;
        if (running || document.hidden) return;
        clearTimeout(timer);
        timer = setTimeout(run, rest());
    });
    document.addEventListener('visibilitychange', onVisibility);
    run();
    return {
        now: run,
        stop() {
            abort.abort();
            clearTimeout(timer);
            unfollow();
            document.removeEventListener('visibilitychange', onVisibility);
        },
    };
}
