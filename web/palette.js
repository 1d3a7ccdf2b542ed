// Colours of frames: the hue tells the module, the shade the function, and text on it stays readable.

import { textOf } from './format.js';

const HUES = 20;
const NATIVE_HUE = 262;
const THEMES = {
    light: { lightness: 0.835, spread: 0.06, chroma: 0.095, native: 0.022, text: '#1d1a16', soft: '#5d564c' },
    dark: { lightness: 0.5, spread: 0.05, chroma: 0.082, native: 0.022, text: '#f4f1ea', soft: '#b9b3a8' },
};

/** A stable 32-bit hash of a text (FNV-1a over UTF-16 units, with a final mix). */
export function hash(text) {
    let value = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
    value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
    return (value ^ (value >>> 13)) >>> 0;
}

function channel(linear) {
    const value = Math.min(1, Math.max(0, linear));
    return Math.round(255 * (value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055));
}

/**
 * Converts OKLCH, in which equal lightness looks equally light in every hue, to sRGB.
 * @returns {[number, number, number]} 0 to 255 each
 */
export function oklch(lightness, chroma, hue) {
    const a = chroma * Math.cos((hue * Math.PI) / 180);
    const b = chroma * Math.sin((hue * Math.PI) / 180);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [
        channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
        channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
        channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
    ];
}

/** Whether a function has no source of its own: written in C, or built into the host. */
export function isNative(fn) {
    return /native|sysop|builtin|^c$/i.test(textOf(fn.kind));
}

/** What a function is coloured by: its file, else the module part of its name. */
export function moduleOf(fn) {
    const file = textOf(fn.file);
    if (file) return file;
    const name = textOf(fn.name);
    const cut = Math.max(name.lastIndexOf('.'), name.lastIndexOf(':'), name.lastIndexOf('/'));
    return cut > 0 ? name.slice(0, cut) : '';
}

/** A function's fill as [r, g, b]. */
export function fillOf(fn, theme) {
    const set = THEMES[theme];
    const shade = (hash(textOf(fn.name)) % 101) / 100 - 0.5;
    const lightness = set.lightness + shade * set.spread;
    if (isNative(fn)) return oklch(lightness, set.native, NATIVE_HUE);
    const hue = ((hash(moduleOf(fn)) % HUES) * 360) / HUES + 24;
    return oklch(lightness, set.chroma, hue);
}

function css([r, g, b]) {
    return `rgb(${r} ${g} ${b})`;
}

/**
 * The colours of all functions, made once for an answer and a theme.
 * @returns {{fills: string[], faded: string[], text: string, soft: string}}
 */
export function palette(functions, theme) {
    const set = THEMES[theme];
    const paper = theme === 'light' ? [246, 244, 240] : [29, 33, 37];
    const colours = functions.map((fn) => fillOf(fn, theme));
    const fade = (rgb) => css(rgb.map((v, i) => Math.round(v * 0.28 + paper[i] * 0.72)));
    return { fills: colours.map(css), faded: colours.map(fade), text: set.text, soft: set.soft };
}
