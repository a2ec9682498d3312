import { useEffect, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../../api/client';
import { useAccess } from '../../app/session';
import { keepDraft, readDraft } from '../../lib/draft';
import { Editor } from '../../ui/code-editor';
import { Confirm } from '../../ui/confirm';
import { CompareView } from '../../ui/diff';
import { Button, Facts, Panel, Ready, useLive } from '../../ui/kit';
import { Empty, Failure } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { useUnsaved } from '../../ui/unsaved';

/** Versions shows the versions of an automation's script, edits and activates them. */
export function Versions({ id, onActivate }: { id: string; onActivate: (version: string) => Promise<void> }) {
  const query = useLive(
    ['automation-versions', id],
    (signal) => ok(api.GET('/api/automations/{id}/versions', { params: { path: { id } }, signal })),
    { topics: ['automations'] },
  );
  return (
    <Panel title="Script">
      <Ready query={query}>
        {(list) =>
          (list.versions ?? []).length === 0 ? (
            <Empty title="No script yet">
              <p>
                Save one with <code>reeve run FILE --save</code>.
              </p>
            </Empty>
          ) : (
            <Script id={id} list={list} onActivate={onActivate} />
          )
        }
      </Ready>
    </Panel>
  );
}

const versionOf = (v: Schemas['ScriptVersion']) => `${v.major}.${v.minor}`;

// useSource reads the script of a version. An empty version reads nothing.
function useSource(id: string, version: string) {
  return useLive(
    ['automation-script', id, version],
    (signal) => ok(api.GET('/api/automations/{id}/versions/{version}', { params: { path: { id, version } }, signal })),
    {},
    { enabled: version !== '' },
  );
}

function Script({
  id,
  list,
  onActivate,
}: {
  id: string;
  list: Schemas['ScriptVersionList'];
  onActivate: (version: string) => Promise<void>;
}) {
  const { can } = useAccess();
  const notify = useNotify();
  const queries = useQueryClient();
  const versions = list.versions ?? [];
  const active = list.active ?? '';
  const [kept] = useState(() => readKept(id, versions.map(versionOf))); // typed before the session or the page ended
  const [chosen, setChosen] = useState(kept?.chosen ?? (active || (versions[0] ? versionOf(versions[0]) : '')));
  const [base, setBase] = useState(kept?.base ?? active); // the active version that the person has seen
  const [other, setOther] = useState('');
  const [wanted, setWanted] = useState(''); // a version to show instead of what was typed
  const [draft, setDraft] = useState<string | null>(kept?.draft ?? null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const current = useSource(id, chosen);
  const compared = useSource(id, other);
  const source = current.data?.source ?? '';
  const isUnsaved = draft !== null && draft !== source;
  const isOld = isUnsaved && !isBusy && base !== active;
  const leaving = useUnsaved(() => isUnsaved);
  useEffect(() => {
    if (current.data) keep(id, isUnsaved ? { chosen, base, draft } : undefined);
  }, [id, current.data, isUnsaved, chosen, base, draft]);
  useEffect(() => {
    if (isUnsaved || isBusy) return;
    setBase(active);
    if (active && chosen === base) setChosen(active);
  }, [active, base, chosen, isBusy, isUnsaved]);
  const show = (version: string) => {
    setChosen(version);
    setDraft(null);
    setError(null);
  };
  const save = async (base_version: string) => {
    if (isBusy || draft === null) return;
    setBusy(true);
    setError(null);
    const refresh = () =>
      queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith('automation') });
    try {
      const body = { source: draft, fix: true, base_version: base_version || undefined };
      const saved = await ok(api.POST('/api/automations/{id}/versions', { params: { path: { id } }, body }));
      notify.done('Saved as a new version');
      queries.setQueryData(['automation-script', id, versionOf(saved)], saved);
      await refresh();
      setChosen(versionOf(saved));
      setBase(versionOf(saved));
      setDraft((now) => (now === draft ? null : now));
    } catch (e) {
      setError(e);
      await refresh(); // somebody may have saved another version
    }
    setBusy(false);
  };
  return (
    <div className="body stack">
      <div className="row wrap">
        <label className="row small">
          Version{' '}
          <select
            className="input"
            value={chosen}
            onChange={(e) => (isUnsaved ? setWanted : show)(e.target.value)}
          >
            {versions.map((v) => (
              <option key={v.id} value={versionOf(v)}>
                {versionOf(v)}
                {versionOf(v) === active ? ' (active)' : ''}
                {v.comment ? `: ${v.comment}` : ''}
              </option>
            ))}
          </select>
        </label>
        <label className="row small">
          Compare with{' '}
          <select className="input" value={other} onChange={(e) => setOther(e.target.value)}>
            <option value="">none</option>
            {versions
              .filter((v) => versionOf(v) !== chosen)
              .map((v) => (
                <option key={v.id} value={versionOf(v)}>
                  {versionOf(v)}
                </option>
              ))}
          </select>
        </label>
        <span className="grow" />
        {can('member') && chosen !== active && (
          <Button onClick={() => void onActivate(chosen)}>Activate {chosen}</Button>
        )}
        {can('member') && isUnsaved && !isOld && (
          <Button kind="main" disabled={isBusy} onClick={() => void save(base)}>
            Save and activate
          </Button>
        )}
      </div>
      {error !== null && !isOld && <Failure error={error} />}
      {isOld && draft !== null && (
        <Newer
          id={id}
          version={versions.find((v) => versionOf(v) === active)}
          draft={draft}
          onSave={can('member') ? () => void save(active) : undefined}
        />
      )}
      {other && compared.data ? (
        <CompareView title={`${other} → ${chosen}`} before={compared.data.source ?? ''} after={source} />
      ) : (
        <Ready query={current}>
          {() => (
            <Editor
              key={chosen}
              label="Script"
              language={current.data?.language === 'ts' ? 'ts' : 'js'}
              value={draft ?? source}
              readOnly={!can('member')}
              onChange={setDraft}
            />
          )}
        </Ready>
      )}
      {isUnsaved && <CompareView title="Your changes" before={source} after={draft} />}
      <Facts
        facts={[
          ['Written', current.data && <Ago key="w" time={current.data.created_at} />],
          ['By', current.data?.created_by && <Inert key="b" text={current.data.created_by} />],
        ]}
      />
      {(leaving.isAsked || wanted) && (
        <Confirm
          title="Discard your changes of the script?"
          action="Discard"
          run={async () => {
            keep(id, undefined);
            if (wanted) show(wanted);
            else leaving.leave();
          }}
          onClose={() => {
            setWanted('');
            leaving.stay();
          }}
        >
          <p>They are not saved.</p>
        </Confirm>
      )}
    </div>
  );
}

interface Kept {
  chosen: string;
  base: string;
  draft: string;
}

function keep(id: string, kept: Kept | undefined): void {
  keepDraft(sessionStorage, `script ${id}`, kept ? JSON.stringify(kept) : '');
}

// readKept returns the script that a person typed and neither saved nor discarded, in this tab.
function readKept(id: string, versions: string[]): Kept | undefined {
  const text = readDraft(sessionStorage, `script ${id}`);
  const kept = text === '' ? undefined : (JSON.parse(text) as Kept);
  return kept && versions.includes(kept.chosen) ? kept : undefined;
}

// Newer says that somebody saved or activated another version while the person typed, and compares it with their text.
function Newer({
  id,
  version,
  draft,
  onSave,
}: {
  id: string;
  version: Schemas['ScriptVersion'] | undefined;
  draft: string;
  onSave?: () => void;
}) {
  const [isComparing, setComparing] = useState(false);
  const name = version ? versionOf(version) : '';
  const newer = useSource(id, isComparing ? name : '');
  return (
    <section className="stack" role="alert" aria-label="A newer version">
      <p>
        <strong>
          {version ? `Version ${name} became active while you edited.` : 'No version is active any more.'}
        </strong>{' '}
        {version && (
          <>
            {version.created_by && (
              <>
                Written by <Inert text={version.created_by} />,{' '}
              </>
            )}
            <Ago time={version.created_at} />.{' '}
          </>
        )}
        Your text is kept here and is not saved.
      </p>
      <div className="row wrap">
        {version && (
          <Button kind="main" onClick={() => setComparing(!isComparing)}>
            {isComparing ? 'Hide the comparison' : 'Compare with yours'}
          </Button>
        )}
        {onSave && <Button onClick={onSave}>Save yours as the next version</Button>}
      </div>
      {isComparing && (
        <Ready query={newer}>
          {(v) => <CompareView title={`${name} → yours`} before={v.source ?? ''} after={draft} />}
        </Ready>
      )}
    </section>
  );
}
