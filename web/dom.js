// Small helpers to build the page. Text enters the document only as text nodes, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Builds an element.
 * @param {string} tag element name, with optional classes: 'div.card.wide'
 * @param {Object<string, *>} [props] attributes; `on` holds listeners, `text` the text
 * @param {...(Node|string|null|false|undefined)} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
    const [name, ...classes] = tag.split('.');
    const el = document.createElement(name);
    if (classes.length) el.className = classes.join(' ');
    apply(el, props);
    append(el, children);
    return el;
}

/**
 * Builds an SVG element.
 * @param {string} tag
 * @param {Object<string, *>} [props]
 * @param {...Node} children
 * @returns {SVGElement}
 */
export function svg(tag, props, ...children) {
    const el = document.createElementNS(SVG, tag);
    apply(el, props);
    append(el, children);
    return el;
}

function apply(el, props) {
    for (const [key, value] of Object.entries(props || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (key === 'on') {
            for (const [type, fn] of Object.entries(value)) el.addEventListener(type, fn);
        } else if (key === 'text') {
            el.textContent = value;
        } else {
            el.setAttribute(key, value === true ? '' : String(value));
        }
    }
}

function append(el, children) {
    for (const child of children) {
        if (child === null || child === undefined || child === false) continue;
        el.append(child);
    }
}

/** Sets text only where it differs, so that nothing is repainted and no selection is lost. */
export function setText(el, text) {
    if (el.textContent !== text) el.textContent = text;
}

/** Sets an attribute only where it differs; null removes it. */
export function setAttr(el, name, value) {
    if (value === null || value === undefined || value === false) {
        if (el.hasAttribute(name)) el.removeAttribute(name);
    } else if (el.getAttribute(name) !== String(value)) {
        el.setAttribute(name, String(value));
    }
}

/** Puts nodes in place of an element's children where they differ from what stands there. */
export function setChildren(el, nodes) {
    const same = el.childNodes.length === nodes.length && nodes.every((node, i) => el.childNodes[i] === node);
    if (!same) el.replaceChildren(...nodes);
}

/**
 * What a module of one view exports. mount makes its View in an element, unmount stops it; in between update takes new
 * parameters, and refresh looks for new numbers unless those at hand are of this generation of the store already.
 */
export function viewModule(View) {
    let view = null;
    return {
        mount(el, params) {
            view = new View(el, params);
        },
        update(params) {
            view.update(params);
        },
        refresh(generation) {
            view.refresh(generation);
        },
        unmount() {
            view.stop();
            view = null;
        },
    };
}

/**
 * Copies text to the clipboard.
 * @returns {Promise<boolean>} whether it worked
 */
export async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        return false;
    }
}

/** A button that copies a text and says so. */
export function copyButton(text, label) {
    const button = h(
        'button.copy',
        { type: 'button', title: `Copy ${label}`, 'aria-label': `Copy ${label}` },
        text
    );
    let timer = 0;
    button.addEventListener('click', async (event) => {
        event.stopPropagation();
        const done = await copy(text);
        button.dataset.done = done ? 'copied' : 'not allowed';
        clearTimeout(timer);
        timer = setTimeout(() => delete button.dataset.done, 1200);
    });
    return button;
}
