// The prelude defines the globals of a script that are not part of the language, such as console, and returns hooks
// for the worker. It runs before the script, so that every built-in it refers to is the original. The worker evaluates
// it to a function and calls that once with its native functions.
(function (native) {
  'use strict';
  const { apply, construct, ownKeys } = Reflect;
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  const { isArray } = Array, { isError } = Error;
  const RealDate = Date, RealError = Error, RealMap = Map, RealSet = Set, text = String, json = JSON.stringify;
  const dateToISO = RealDate.prototype.toISOString, mapEach = RealMap.prototype.forEach, setEach = RealSet.prototype.forEach;
  const functionName = (f) => { const d = getOwnPropertyDescriptor(f, 'name'); return d && typeof d.value === 'string' ? d.value : ''; };
  const origins = new WeakMap();
  const weakGet = WeakMap.prototype.get, weakSet = WeakMap.prototype.set;
  const isObject = (v) => (typeof v === 'object' && v !== null) || typeof v === 'function';
  RealError.stackTraceLimit = 50;

  // fix makes Date return the time of the run and seeds Math.random, so that a repeated run sees the same values.
  // Nothing else in the engine reads a clock.
  const fix = (now, a, b, c, d) => {
    const FixedDate = function Date(...args) {
      if (new.target === undefined) return apply(RealDate.prototype.toString, new RealDate(now), []);
      return construct(RealDate, args.length === 0 ? [now] : args, new.target);
    };
    const put = (name, v) => defineProperty(FixedDate, name, { value: v, writable: true, enumerable: false, configurable: true });
    put('now', { now() { return now; } }.now);
    put('parse', RealDate.parse);
    put('UTC', RealDate.UTC);
    defineProperty(FixedDate, 'length', { value: 7 });
    defineProperty(FixedDate, 'prototype', { value: RealDate.prototype, writable: false, enumerable: false, configurable: false });
    defineProperty(RealDate.prototype, 'constructor', { value: FixedDate, writable: true, enumerable: false, configurable: true });
    defineProperty(globalThis, 'Date', { value: FixedDate, writable: true, enumerable: false, configurable: true });
    const next = () => { // sfc32
      const t = (a + b | 0) + d | 0;
      d = d + 1 | 0; a = b ^ b >>> 9; b = c + (c << 3) | 0; c = (c << 21 | c >>> 11) + t | 0;
      return t >>> 0;
    };
    for (let i = 0; i < 12; i++) next();
    defineProperty(Math, 'random', { value: { random() { return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992; } }.random,
      writable: true, enumerable: false, configurable: true });
  };

  // show formats a value for the log. It limits depth and length, and handles objects whose accessors throw.
  const show = (v, depth) => {
    if (isPlaceholder(v)) return text(v);
    switch (typeof v) {
      case 'string': return depth === 0 ? v : json(v);
      case 'bigint': return text(v) + 'n';
      case 'symbol': return text(v);
      case 'function': return '[function ' + (functionName(v) || 'anonymous') + ']';
      case 'object': break;
      default: return text(v);
    }
    if (v === null) return 'null';
    try {
      if (isError(v)) { const d = describe(v); return d[0] + ': ' + d[1]; }
      if (v instanceof RealDate) return apply(dateToISO, v, []);
      if (depth >= 4) return isArray(v) ? '[…]' : '{…}';
      let out = '', n = 0;
      const add = (s) => { if (n < 100) out += (n ? ', ' : '') + s; else if (n === 100) out += ', …'; n++; };
      if (isArray(v)) {
        for (let i = 0; i < v.length && n <= 100; i++) add(show(v[i], depth + 1));
        return '[' + out + ']';
      }
      if (v instanceof RealMap) { apply(mapEach, v, [(x, k) => { if (n <= 100) add(show(k, depth + 1) + ' => ' + show(x, depth + 1)); }]); return 'Map {' + out + '}'; }
      if (v instanceof RealSet) { apply(setEach, v, [(x) => { if (n <= 100) add(show(x, depth + 1)); }]); return 'Set {' + out + '}'; }
      const keys = ownKeys(v);
      for (let i = 0; i < keys.length && n <= 100; i++) {
        const d = getOwnPropertyDescriptor(v, keys[i]);
        if (!d || !d.enumerable) continue;
        add((typeof keys[i] === 'symbol' ? '[' + text(keys[i]) + ']' : json(keys[i])) + ': ' + ('value' in d ? show(d.value, depth + 1) : '[getter]'));
      }
      return '{' + out + '}';
    } catch { return '[object that throws]'; }
  };

  // describe returns the name, message, stack and originating host call of a thrown value, which need not be an Error.
  const describe = (e) => {
    const read = (k) => { try { const v = e[k]; return typeof v === 'string' ? v : ''; } catch { return ''; } };
    if (!isError(e)) return ['', show(e, 0), isObject(e) ? read('stack') : '', origin(e)];
    return [read('name') || 'Error', read('message'), read('stack'), origin(e)];
  };
  const origin = (e) => (isObject(e) && apply(weakGet, origins, [e])) || 0;

  const console = {};
  const levels = ['debug', 'log', 'info', 'warn', 'error'];
  for (let i = 0; i < levels.length; i++) {
    const level = levels[i];
    const f = { [level](...args) {
      let line = '';
      for (let j = 0; j < args.length; j++) line += (j ? ' ' : '') + show(args[j], 0);
      native.log(i, line);
    } }[level];
    defineProperty(console, level, { value: f, writable: true, enumerable: true, configurable: true });
  }
  defineProperty(globalThis, 'console', { value: console, writable: true, enumerable: false, configurable: true });

  // placeholder returns a value that stands for the result of a call that was not made. Its properties and calls are
  // placeholders too, and as text it explains itself.
  const placeholders = new WeakSet(), setAdd = WeakSet.prototype.add, setHas = WeakSet.prototype.has;
  const isPlaceholder = (v) => isObject(v) && apply(setHas, placeholders, [v]);
  const placeholder = (head, path) => {
    const shown = '‹' + head + path + ', not run›';
    const values = {
      __proto__: null,
      then: undefined, // so that await returns the placeholder itself
      toJSON: () => shown, toString: () => shown, valueOf: () => shown,
      [Symbol.toPrimitive]: () => shown, [Symbol.toStringTag]: 'Placeholder',
      [Symbol.iterator]: function* () { yield placeholder(head, path + '[0]'); },
    };
    const proxy = new Proxy(() => {}, {
      get: (_, key) => key in values ? values[key]
        : typeof key === 'symbol' ? undefined : placeholder(head, path + '.' + key),
      has: () => true,
      set: () => true,
      apply: () => placeholder(head, path + '()'),
      ownKeys: () => [],
      getOwnPropertyDescriptor: () => undefined,
      getPrototypeOf: () => null,
      defineProperty: () => true,
      deleteProperty: () => true,
    });
    apply(setAdd, placeholders, [proxy]);
    return proxy;
  };

  return {
    fix, describe, origin, isPlaceholder,
    placeholder: (text) => placeholder(text, ''),
    // fail fills in the Error of a failed host call. The Error was created at the call, so that its stack has the line.
    fail(error, message, code, hint, call) {
      const put = (name, v) => defineProperty(error, name, { value: v, writable: true, enumerable: name === 'code' || name === 'hint', configurable: true });
      put('message', message);
      if (code) put('code', code);
      if (hint) put('hint', hint);
      apply(weakSet, origins, [error, call]);
      return error;
    },
    // invoke calls a function of the script. The methods are added to its first argument.
    async invoke(id, f, args, methods) {
      if (isObject(args[0])) for (const name of ownKeys(methods)) args[0][name] = methods[name];
      try { native.returned(id, await apply(f, undefined, args)); } catch (e) { native.threw(id, e); }
    },
    async watch(promise) {
      try { const last = await promise; native.done(await last.value); } catch (e) { native.failed(e); }
    },
  };
})
