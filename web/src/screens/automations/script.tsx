import { lazy, Suspense, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../../api/client';
import { useAccess } from '../../app/session';
import { Confirm } from '../../ui/confirm';
import { CompareView } from '../../ui/diff';
import { Button, Facts, Panel, Ready, useLive } from '../../ui/kit';
import { Empty, Failure, Loading } from '../../ui/states';
import { Ago } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { useUnsaved } from '../../ui/unsaved';

const Editor = lazy(() => import('../../ui/editor'));

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
  const [chosen, setChosen] = useState(list.active ?? (versions[0] ? versionOf(versions[0]) : ''));
  const [other, setOther] = useState('');
  const [draft, setDraft] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const read = (version: string, enabled: boolean) =>
    useLive(
      ['automation-script', id, version],
      (signal) =>
        ok(api.GET('/api/automations/{id}/versions/{version}', { params: { path: { id, version } }, signal })),
      {},
      { enabled },
    );
  const current = read(chosen, chosen !== '');
  const compared = read(other, other !== '');
  const save = async () => {
    setError(null);
    try {
      await ok(
        api.POST('/api/automations/{id}/versions', {
          params: { path: { id } },
          body: { source: draft ?? '', fix: true },
        }),
      );
      notify.done('Saved as a new version');
      setDraft(null);
      void queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith('automation') });
    } catch (e) {
      setError(e);
    }
  };
  const source = current.data?.source ?? '';
  const isUnsaved = draft !== null && draft !== source;
  const leaving = useUnsaved(() => isUnsaved);
  const [wanted, setWanted] = useState(''); // a version to show instead of what was typed
  const show = (version: string) => {
    setChosen(version);
    setDraft(null);
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
                {versionOf(v) === list.active ? ' (active)' : ''}
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
        {can('member') && chosen !== list.active && (
          <Button onClick={() => void onActivate(chosen)}>Activate {chosen}</Button>
        )}
        {can('member') && isUnsaved && (
          <Button kind="main" onClick={() => void save()}>
            Save and activate
          </Button>
        )}
      </div>
      {error !== null && <Failure error={error} />}
      {other && compared.data ? (
        <CompareView title={`${other} → ${chosen}`} before={compared.data.source ?? ''} after={source} />
      ) : (
        <Ready query={current}>
          {() => (
            <Suspense fallback={<Loading />}>
              <Editor
                key={chosen}
                label="Script"
                language={current.data?.language === 'ts' ? 'ts' : 'js'}
                value={draft ?? source}
                readOnly={!can('member')}
                onChange={setDraft}
              />
            </Suspense>
          )}
        </Ready>
      )}
      {isUnsaved && <CompareView title="Your changes" before={source} after={draft} />}
      <Facts
        facts={[
          ['Written', current.data && <Ago key="w" time={current.data.created_at} />],
          ['By', current.data?.created_by],
        ]}
      />
      {(leaving.isAsked || wanted) && (
        <Confirm
          title="Discard your changes of the script?"
          action="Discard"
          run={async () => (wanted ? show(wanted) : leaving.leave())}
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
