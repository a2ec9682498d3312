import { useEffect, useRef } from 'react';
import { javascript } from '@codemirror/lang-javascript';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import { python } from '@codemirror/lang-python';
import { HighlightStyle, syntaxHighlighting, syntaxTree } from '@codemirror/language';
import { linter, lintGutter, type Diagnostic } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { basicSetup } from 'codemirror';

const LANGUAGES = {
  js: () => javascript(),
  ts: () => javascript({ typescript: true }),
  json: () => json(),
  py: () => python(),
};

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.propertyName], color: 'var(--run)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--wait)' },
  { tag: tags.comment, color: 'var(--faint)' },
  { tag: [tags.function(tags.variableName), tags.typeName], color: 'var(--odd)' },
]);

const look = EditorView.theme({
  '&': {
    backgroundColor: 'var(--sunk)',
    color: 'var(--ink)',
    fontSize: '0.8125rem',
    border: '1px solid var(--line-strong)',
    borderRadius: '6px',
    maxHeight: '32rem',
  },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '1px' },
  '.cm-content, .cm-gutters': { fontFamily: 'var(--mono)' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--sunk)', color: 'var(--faint)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--run-bg)',
  },
  '.cm-scroller': { overflow: 'auto' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--panel)', color: 'var(--ink)', border: '1px solid var(--line)' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--run-bg)', color: 'var(--ink)' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '600' },
  '.cm-completionDetail, .cm-panel.cm-search label': { color: 'var(--soft)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-textfield': { backgroundColor: 'var(--panel)', color: 'var(--ink)', borderColor: 'var(--line-strong)' },
  '.cm-button': {
    backgroundImage: 'none', backgroundColor: 'var(--hover)', color: 'var(--ink)', borderColor: 'var(--line)',
  },
  '.cm-panel.cm-search [name=close]': { color: 'var(--soft)' },
});

// syntaxErrors marks what the parser could not read.
const syntaxErrors = linter((view) => {
  const found: Diagnostic[] = [];
  syntaxTree(view.state).iterate({
    enter: (node) => {
      if (node.type.isError && found.length < 20) {
        found.push({
          from: node.from,
          to: Math.max(node.to, node.from + 1),
          severity: 'error',
          message: 'syntax error',
        });
      }
    },
  });
  return found.map((d) => ({ ...d, to: Math.min(d.to, view.state.doc.length) }));
});

// replaceLines answers input over a selection of several lines. The browser would merge the lines itself and copy their
// look into style attributes, which the content security policy forbids.
const replaceLines = EditorView.domEventHandlers({
  beforeinput(e, view) {
    const { main } = view.state.selection;
    const isDeletion = e.inputType.startsWith('delete');
    const text = isDeletion ? '' : e.data;
    if (text === null || !(isDeletion || e.inputType === 'insertText')) return false;
    if (view.state.doc.lineAt(main.from).number === view.state.doc.lineAt(main.to).number) return false;
    const replace = () => view.state.update(view.state.replaceSelection(text), {
      userEvent: isDeletion ? 'delete.selection' : 'input.type', scrollIntoView: true,
    });
    const isHandled = !isDeletion
      && view.state.facet(EditorView.inputHandler).some((handle) => handle(view, main.from, main.to, text, replace));
    if (!isHandled) view.dispatch(replace());
    e.preventDefault();
    return true;
  },
});

/**
 * Editor edits code. It lives in a shadow root, where CodeMirror adopts its style sheets; in the document it would add
 * style elements, which the content security policy forbids.
 */
export default function Editor({
  label,
  language,
  value,
  readOnly,
  onChange,
}: {
  label: string;
  language: keyof typeof LANGUAGES;
  value: string;
  readOnly?: boolean;
  onChange?: (value: string) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const latest = useRef(onChange);
  latest.current = onChange;
  const text = useRef(value); // kept when the editor is made again
  useEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' });
    const view = new EditorView({
      root, parent: root,
      state: EditorState.create({
        doc: text.current,
        extensions: [
          basicSetup, LANGUAGES[language](), syntaxHighlighting(colours), look, lintGutter(), replaceLines,
          language === 'json' ? linter(jsonParseLinter()) : syntaxErrors,
          EditorView.lineWrapping, EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorState.readOnly.of(readOnly ?? false),
          EditorView.updateListener.of((u) => {
            if (!u.docChanged) return;
            text.current = u.state.doc.toString();
            latest.current?.(text.current);
          }),
        ],
      }),
    });
    return () => view.destroy();
  }, [label, language, readOnly]);
  // Escape closes the list of completions, not the dialog around the editor.
  return <div ref={host} data-own-keys onKeyDown={(e) => e.key === 'Escape' && e.stopPropagation()} />;
}
