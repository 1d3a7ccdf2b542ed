// Asks for a flame graph at once where the address names one, while the page's other modules still load.

const METRIC = 'inclusive_ns';
const MAX_PIXELS = 8192;
const MIN_PIXELS = 256;

let pending = null;

/**
 * Device pixels across the screen: what the server folds by. The screen's, not the window's, so that a resized window
 * needs no new answer; and asking for the window's would make the browser lay out a page that is not there yet.
 */
function pixelsAcross() {
    return Math.min(MAX_PIXELS, Math.max(MIN_PIXELS, Math.round(screen.width * devicePixelRatio)));
}

/** Parameters of a run's whole graph. */
export function flameParams(execution, metric) {
    return { execution, metric: metric || METRIC, width: pixelsAcross(), ids: 1 };
}

/** The answer to a request that was made early, once; null where there is none. */
export function takeEarly(url) {
    const early = pending && pending.url === url ? pending.response : null;
    pending = null;
    return early;
}

function begin() {
    const match = /^#\/x\/([^/?]+)\/flame(?:\?(.*))?$/.exec(location.hash);
    if (!match) return;
    const metric = new URLSearchParams(match[2] || '').get('metric');
    let id;
    try {
        id = decodeURIComponent(match[1]);
    } catch {
        return;
    }
    const url = `/api/v1/flame?${new URLSearchParams(flameParams(id, metric))}`;
    const response = fetch(url, {
        headers: { Accept: 'application/json' },
        cache: 'no-store',
        credentials: 'same-origin',
    });
    // Whoever takes it hears of a failure; until then nobody does.
    response.catch(() => {});
    pending = { url, response };
}

begin();
