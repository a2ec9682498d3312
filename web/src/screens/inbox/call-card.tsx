import { Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, ok } from '../../api/client';
import { useAgentName, useTools } from '../../app/data';
import { useAccess } from '../../app/session';
import { formatMicros } from '../../lib/format';
import { PreviewView } from '../../ui/diff';
import { ArgsView } from '../../ui/json';
import { Button, Facts, StateTag, Tag } from '../../ui/kit';
import { Failure } from '../../ui/states';
import { Ago, Id, Inert } from '../../ui/text';

/** EFFECTS says in words what each effect class means for the person who decides. */
export const EFFECTS: Record<string, string> = {
  read: 'reads only',
  local: 'changes data in Reeve, exactly once',
  keyed: 'sent with a key; the receiver drops repeats',
  verifiable: 'Reeve can look up afterwards whether it happened',
  unsafe: 'cannot be looked up; after a crash a person decides',
};

/** HIDDEN is the mark in the place of a secret. */
export const HIDDEN = '[REDACTED]';

/** CallBody shows what a call would do: reason, the change, arguments, and facts for the decision. */
export function CallBody({
  call,
  facts = [],
  isHidden,
  reveal,
  previewLabel = 'What would change',
}: {
  call: {
    agent_id: string;
    tool: string;
    args: string;
    preview?: string;
    reason?: string;
    why?: string;
    created_at: string;
    operation_id?: string;
    call_id: string;
    state: string;
  };
  facts?: [string, ReactNode][];
  previewLabel?: string;
  isHidden?: boolean;
  reveal?: string; // the approval whose secrets an owner may see
}) {
  const { can } = useAccess();
  const [isRevealed, setRevealed] = useState(false);
  const secret = useQuery({
    queryKey: ['revealed', reveal, call.call_id],
    enabled: isRevealed && reveal !== undefined,
    gcTime: 0,
    staleTime: 0,
    queryFn: ({ signal }) =>
      ok(api.GET('/api/approvals/{id}/revealed', { params: { path: { id: reveal ?? '' } }, signal })),
  });
  const shown = isRevealed && can('owner') && secret.data ? secret.data : null;
  const args = shown?.args ?? call.args;
  const preview = shown?.preview || call.preview;
  const nameOf = useAgentName();
  const tools = useTools();
  const tool = tools.data?.tools?.find((t) => t.id === call.tool);
  const hides = isHidden || call.args.includes(HIDDEN) || Boolean(call.preview?.includes(HIDDEN));
  return (
    <div className="body stack">
      {call.reason && (
        <p>
          <span className="label">Reason: </span>
          <Inert text={call.reason} />
        </p>
      )}
      {hides && (
        <div className="row wrap small">
          <Tag tone="wait">{shown ? 'shown' : 'hidden'}</Tag>
          {shown ? (
            <span>The secrets of this call are visible on this page.</span>
          ) : (
            <span>
              A stored secret is part of this call. It is shown as <code>{HIDDEN}</code>.
              {reveal && !can('owner') && ' An owner can show it.'}
            </span>
          )}
          {reveal && can('owner') && (
            <Button onClick={() => setRevealed(!isRevealed)}>{isRevealed ? 'Hide' : 'Show what is hidden'}</Button>
          )}
        </div>
      )}
      {isRevealed && secret.isError && <Failure error={secret.error} />}
      {preview && (
        <section className="stack tight">
          <h3>{previewLabel}</h3>
          <PreviewView preview={preview} />
        </section>
      )}
      <section className="stack tight">
        <h3>Arguments</h3>
        <ArgsView args={args} />
      </section>
      <Facts
        facts={[
          [
            'Agent',
            <Link key="a" to="/agents/$id" params={{ id: call.agent_id }}>
              <Inert text={nameOf(call.agent_id)} />
            </Link>,
          ],
          [
            'Tool',
            <Link key="t" to="/tools/$id" params={{ id: call.tool }}>
              {call.tool}
            </Link>,
          ],
          ['Why it waits', call.why && <Inert text={call.why} />],
          ['Effect', tool && `${tool.effect}: ${EFFECTS[tool.effect] ?? ''}`],
          ['Risk', tool?.risk],
          ['Cost', tool && (tool.cost?.micros ? `at most ${formatMicros(tool.cost.micros)}` : 'none known')],
          ['Asked', <Ago key="c" time={call.created_at} />],
          ...facts,
          [
            'Explanation',
            call.operation_id && (
              <Link key="o" to="/operations/$id" params={{ id: call.operation_id }}>
                every check of the call <Id id={call.operation_id} />
              </Link>
            ),
          ],
        ]}
      />
    </div>
  );
}

/** CardTitle is the first line of a card. */
export function CardTitle({ tool, args, state }: { tool: string; args?: string; state: string }) {
  return (
    <>
      <h2 className="grow cut">
        {tool}{' '}
        <span className="soft">
          <Inert text={shorten(args)} />
        </span>
      </h2>
      <StateTag state={state} />
    </>
  );
}

function shorten(text = ''): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
