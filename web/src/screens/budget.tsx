import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { useRefresh } from '../app/act';
import { compact, formatAmount, formatMicros } from '../lib/format';
import { ConfirmButton } from '../ui/confirm';
import { Dialog } from '../ui/dialog';
import { Button, Facts, Field, Tag } from '../ui/kit';
import { Failure } from '../ui/states';
import { useNotify } from '../ui/toast';

const UNITS = [
  ['micros', formatMicros],
  ['tokens', compact],
  ['calls', compact],
] as const;

/** budgetParts returns what is used of each limit of a budget, and the largest share. */
export function budgetParts(b: Schemas['Budget']) {
  const parts = UNITS.filter(([k]) => b.limit[k]).map(([k, show]) => ({
    k,
    show,
    used: (b.used[k] ?? 0) + (b.reserved[k] ?? 0),
    limit: b.limit[k] ?? 0,
  }));
  return { parts, worst: Math.max(0, ...parts.map((p) => p.used / p.limit)) };
}

/** UsedBar shows how much of a budget is used. */
export function UsedBar({ share }: { share: number }) {
  return (
    <div className="progress" role="img" aria-label={`${Math.round(share * 100)} % used`}>
      <div className={share >= 1 ? 'bad' : ''} style={{ width: `${Math.min(100, share * 100)}%` }} />
    </div>
  );
}

/** BudgetFacts shows a budget: used, limit, and what happens when it is spent. */
export function BudgetFacts({ budget }: { budget: Schemas['Budget'] }) {
  const { parts, worst } = budgetParts(budget);
  return (
    <div className="stack tight">
      <UsedBar share={worst} />
      <Facts
        facts={[
          ['Used', formatAmount(budget.used) || 'nothing'],
          ['Limit', parts.map((p) => `${p.show(p.limit)}${p.k === 'micros' ? '' : ` ${p.k}`}`).join(' · ')],
          [
            'When it is spent',
            <span key="w">
              {budget.on_exceed === 'park' ? 'calls wait' : 'runs end'}
              {worst >= 1 && (
                <>
                  {' '}
                  <Tag tone="bad">spent</Tag>
                </>
              )}
            </span>,
          ],
        ]}
      />
    </div>
  );
}

/** BudgetDialog sets or deletes the budget of an agent or of the workspace. An empty limit is no limit. */
export function BudgetDialog({
  subject,
  name,
  budget,
  onClose,
}: {
  subject: string;
  name: string;
  budget?: Schemas['Budget'];
  onClose: () => void;
}) {
  const notify = useNotify();
  const refresh = useRefresh('budgets', 'inbox');
  const l = budget?.limit;
  const [form, setForm] = useState({
    dollars: l?.micros ? String(l.micros / 1e6) : '',
    tokens: l?.tokens ? String(l.tokens) : '',
    calls: l?.calls ? String(l.calls) : '',
    on_exceed: (budget?.on_exceed ?? 'park') as 'end' | 'park',
  });
  const [error, setError] = useState<unknown>(null);
  const params = { path: { subject } };
  const amounts = [form.dollars, form.tokens, form.calls];
  const hasLimit = Boolean(l?.millis) || amounts.some((x) => Number(x) > 0);
  const save = async () => {
    setError(null);
    try {
      await ok(
        api.PUT('/api/budgets/{subject}', {
          params,
          body: {
            parent: budget?.parent,
            on_exceed: form.on_exceed,
            limit: {
              millis: l?.millis,
              micros: Math.round(Number(form.dollars) * 1e6),
              tokens: Number(form.tokens),
              calls: Number(form.calls),
            },
          },
        }),
      );
      notify.done('Saved');
      refresh();
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  const number = (key: 'dollars' | 'tokens' | 'calls', label: string, step: string) => (
    <Field label={label}>
      {(id) => (
        <input
          id={id}
          className="input"
          type="number"
          autoFocus={key === 'dollars'}
          min="0"
          step={step}
          placeholder="no limit"
          value={form[key]}
          onChange={(e) => setForm({ ...form, [key]: e.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Dialog title={`Budget of ${name}`} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {number('dollars', 'Dollars', 'any')}
        {number('tokens', 'Tokens', '1')}
        {number('calls', 'Calls', '1')}
        <Field label="When it is spent">
          {(id) => (
            <select
              id={id}
              className="input"
              value={form.on_exceed}
              onChange={(e) => setForm({ ...form, on_exceed: e.target.value as 'end' })}
            >
              <option value="park">calls wait for a person</option>
              <option value="end">runs end</option>
            </select>
          )}
        </Field>
        {!hasLimit && <p className="small soft">Give at least one limit{budget ? ', or delete the budget' : ''}.</p>}
        {error !== null && <Failure error={error} />}
        <div className="actions">
          {budget && (
            <ConfirmButton
              label="Delete"
              kind="bad"
              title={`Delete the budget of ${name}?`}
              done="Deleted"
              run={async () => {
                await ok(api.DELETE('/api/budgets/{subject}', { params }));
                refresh();
                onClose();
              }}
            >
              <p>{subject === 'workspace' ? 'There is no limit then.' : "Only the workspace's budget limits it then."}</p>
            </ConfirmButton>
          )}
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={!hasLimit}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
