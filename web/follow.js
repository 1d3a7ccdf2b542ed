// Changes of the store, told to every tab of this origin over one connection: browsers open only a few to a server.
//
// The tab that holds a lock listens, and passes on what it hears; when it closes, another one gets the lock. Where
// events do not come through, it asks for one change at a time. Where the browser has no locks (a page that is neither
// encrypted nor from this machine), nobody listens, and views ask at intervals.

const NAME = 'varve-follow';
const PATH = '/api/v1/follow';
const WAIT_S = 25;
const FIRST_EVENT_MS = 10000;
const RETRY_MS = 5000;

const listeners = new Set();
let channel = null;
let leading = false;
/** What is known: whether the server is heard at all, and the state of the store that it told last. */
let known = { heard: false, generation: null };

function take(news) {
    const changed = known.heard !== news.heard || known.generation !== news.generation;
    known = news;
    if (changed) for (const listener of [...listeners]) listener();
}

function tell(heard, generation = known.generation) {
    take({ heard, generation });
    channel.postMessage(known);
}

/** Listens until events do not come through. */
function listen() {
    return new Promise((resolve) => {
        const source = new EventSource(PATH);
        let first = true;
        let timer = 0;
        const stop = () => {
            clearTimeout(timer);
            source.close();
            tell(false);
            resolve();
        };
        const hear = (event) => {
            first = false;
            clearTimeout(timer);
            tell(true, JSON.parse(event.data).generation);
        };
        timer = setTimeout(stop, FIRST_EVENT_MS);
        source.addEventListener('snapshot', hear);
        source.addEventListener('change', hear);
        // One that connects again where it left off hears nothing until there is something new.
        source.addEventListener('open', () => {
            if (!first) tell(true);
        });
        source.addEventListener('error', () => {
            if (source.readyState === EventSource.CLOSED) {
                stop();
                return;
            }
            // A server that is not there is no reason to ask it in another way.
            clearTimeout(timer);
            tell(false);
        });
    });
}

/** Asks for one change after the other, until an answer fails. */
async function askForEach() {
    let query = '';
    try {
        for (;;) {
            const options = { cache: 'no-store', credentials: 'same-origin', headers: { Accept: 'application/json' } };
            const response = await fetch(PATH + query, options);
            if (!response.ok) break;
            const { cursor, generation } = await response.json();
            tell(true, generation);
            query = `?${new URLSearchParams({ cursor, wait: WAIT_S })}`;
        }
    } catch {
        // The views say that the server does not answer.
    }
    tell(false);
}

/** Holds the lock for as long as the tab lives. */
async function lead() {
    leading = true;
    for (;;) {
        await listen();
        await askForEach();
        await new Promise((resolve) => {
            setTimeout(resolve, RETRY_MS);
        });
    }
}

function begin() {
    if (channel || !navigator.locks || !globalThis.BroadcastChannel || !globalThis.EventSource) return;
    channel = new BroadcastChannel(NAME);
    channel.addEventListener('message', ({ data }) => {
        if (data !== 'hello') take(data);
        else if (leading) channel.postMessage(known);
    });
    channel.postMessage('hello');
    // A tab that comes back from the browser's memory has missed what was told meanwhile.
    addEventListener('pageshow', (event) => {
        if (event.persisted) channel.postMessage('hello');
    });
    navigator.locks.request(NAME, lead).catch(() => {});
}

/** Whether changes are told: then nobody need ask whether there are any. */
export function isFollowing() {
    return known.heard;
}

/**
 * @param {() => void} listener called when the store has changed, or it is no longer told whether it does
 * @returns {() => void} ends it
 */
export function onChange(listener) {
    listeners.add(listener);
    begin();
    return () => listeners.delete(listener);
}
