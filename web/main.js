// The page's frame: which view stands for the address, the theme, the keys that hold everywhere.

import { get } from './api.js';
import { setAttr, setText } from './dom.js';
import * as execution from './execution.js';
import { textOf } from './format.js';
import * as list from './list.js';

const THEME_KEY = 'varve-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');
let current = null;

/**
 * @typedef {Object} Params what a view gets
 * @property {string} [id] execution
 * @property {string} [tab]
 * @property {Object<string, string>} query
 * @property {(patch: Object, replace?: boolean) => void} navigate changes the address; null removes a part
 * @property {(text: string) => void} announce to who hears the page
 * @property {(state: string, text: string) => void} pulse the liveness mark in the bar
 */

function parse(hash) {
    const [path, query] = hash.replace(/^#/, '').split('?');
    const parts = path.split('/').filter(Boolean).map(decode);
    const params = { query: Object.fromEntries(new URLSearchParams(query || '')) };
    if (parts[0] !== 'x' || !parts[1]) return { view: list, params };
    return {
        view: execution,
        params: { ...params, id: parts[1], tab: parts[2] === 'functions' ? 'functions' : 'flame' },
    };
}

function decode(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}

function format({ id, tab, query }) {
    const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
    const path = id ? `#/x/${encodeURIComponent(id)}/${tab}` : '#/';
    return text ? `${path}?${text}` : path;
}

function navigate(patch, replace = false) {
    const { params } = parse(location.hash);
    const next = { ...params, ...patch, query: { ...params.query, ...patch.query } };
    const hash = format(next);
    if (hash === location.hash) return;
    if (replace) {
        history.replaceState(null, '', hash);
        route();
    } else {
        location.hash = hash;
    }
}

function announce(text) {
    setText(document.getElementById('announcer'), text);
}

function pulse(state, text) {
    setAttr(document.getElementById('pulse'), 'data-state', state);
    setText(document.getElementById('pulse-text'), text);
}

function route() {
    const { view, params } = parse(location.hash);
    const full = { ...params, navigate, announce, pulse };
    const same = current && current.view === view && current.id === params.id;
    if (same) {
        view.update(full);
        return;
    }
    if (current) current.view.unmount();
    current = { view, id: params.id };
    const main = document.getElementById('main');
    main.replaceChildren();
    view.mount(main, full);
}

function theme() {
    let stored = null;
    try {
        stored = localStorage.getItem(THEME_KEY);
    } catch {
        // No storage, no memory of the choice: the system's theme holds.
    }
    return stored === 'light' || stored === 'dark' ? stored : dark.matches ? 'dark' : 'light';
}

function showTheme() {
    const name = theme();
    document.documentElement.dataset.theme = name;
    const button = document.getElementById('theme');
    const label = `Switch to the ${name === 'dark' ? 'light' : 'dark'} theme`;
    setAttr(button, 'aria-label', label);
    setAttr(button, 'title', label);
    document.dispatchEvent(new CustomEvent('varve-theme', { detail: name }));
}

function toggleTheme() {
    const next = theme() === 'dark' ? 'light' : 'dark';
    try {
        // A choice equal to the system's is no choice: the page follows the system again.
        if (next === (dark.matches ? 'dark' : 'light')) localStorage.removeItem(THEME_KEY);
        else localStorage.setItem(THEME_KEY, next);
    } catch {
        return;
    }
    showTheme();
}

function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === '?' && !typing) {
        event.preventDefault();
        document.getElementById('keys').showModal();
    } else if (event.key === '/' && !typing) {
        const search = document.querySelector('main input[type=search]');
        if (!search) return;
        event.preventDefault();
        search.focus();
        search.select();
    }
}

async function showStore() {
    try {
        const meta = await get('/api/v1/meta');
        setText(document.getElementById('store'), textOf(meta.store.name));
    } catch {
        // The views say what is wrong; the name is an ornament.
    }
}

showTheme();
dark.addEventListener('change', showTheme);
document.getElementById('theme').addEventListener('click', toggleTheme);
document.getElementById('help').addEventListener('click', () => document.getElementById('keys').showModal());
document.addEventListener('keydown', onKey);
addEventListener('hashchange', route);
route();
showStore();
