import createClient, { type Middleware } from 'openapi-fetch';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];

/** ApiError is a refused or failed request: what is wrong, what to do, and the id to find it in the server's log. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
    readonly requestId: string,
    readonly fields: { path: string; message: string }[] = [],
  ) {
    super(message);
  }
}

let workspace = '';
/** setWorkspace sets the workspace that every following request names. */
export function setWorkspace(id: string): void {
  workspace = id;
}
/** currentWorkspace returns the workspace that requests name. */
export function currentWorkspace(): string {
  return workspace;
}

/** READ_TIMEOUT_MS is how long a read may take. A connection that died without notice would hang for good otherwise. */
const READ_TIMEOUT_MS = 30_000;

let forbidden = () => {};
/** onForbidden sets what happens after the server refused a request because of the person's rights. */
export function onForbidden(f: () => void): void {
  forbidden = f;
}

const headers: Middleware = {
  onRequest({ request }) {
    if (workspace) request.headers.set('X-Workspace-Id', workspace);
    if (request.method === 'POST' && !request.headers.has('Idempotency-Key')) {
      request.headers.set('Idempotency-Key', crypto.randomUUID());
    }
    if (request.method !== 'GET') return request;
    return new Request(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(READ_TIMEOUT_MS)]) });
  },
  onResponse({ response }) {
    if (response.status === 403) forbidden();
  },
};

export const api = createClient<paths>({ baseUrl: location.origin, credentials: 'same-origin' });
api.use(headers);

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** ok returns the data of an answer. It throws an ApiError if the server refused the request or cannot be reached. */
export async function ok<T>(answer: Promise<Answer<T>>): Promise<T> {
  let result: Answer<T>;
  try {
    result = await answer;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    if (cause instanceof DOMException && cause.name === 'TimeoutError') {
      throw new ApiError(0, 'TIMEOUT', 'the server did not answer in time', 'try again, or look at its log', '');
    }
    throw new ApiError(
      0,
      'UNREACHABLE',
      'the server cannot be reached',
      'check that it runs; the page tries again',
      '',
    );
  }
  if (result.response.ok) return result.data as T;
  throw problemOf(result.response.status, result.error);
}

/** problemOf turns an application/problem+json body into an ApiError. */
export function problemOf(status: number, body: unknown): ApiError {
  const p = (typeof body === 'object' && body !== null ? body : {}) as Partial<Schemas['Problem']>;
  return new ApiError(status, p.code ?? `HTTP_${status}`, p.detail ?? p.title ?? `the server answered ${status}`,
    p.hint ?? '', p.request_id ?? '', p.errors ?? []);
}

export interface Session {
  user: string;
  role: 'viewer' | 'member' | 'owner';
  workspaces: { id: string; name: string }[];
  version: string;
  expires_at?: string;
}

async function sessionRequest(method: string, body?: unknown): Promise<Response> {
  try {
    return await fetch('/api/session', {
      method,
      credentials: 'same-origin',
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new ApiError(0, 'UNREACHABLE', 'the server cannot be reached', 'check that it runs, then try again', '');
  }
}

/** findSession returns the session of the browser's cookie, or null if nobody is signed in. */
export async function findSession(): Promise<Session | null> {
  const answer = await sessionRequest('GET');
  if (answer.status === 401) return null;
  if (!answer.ok) throw problemOf(answer.status, await answer.json().catch(() => null));
  return (await answer.json()) as Session;
}

/** signIn begins a session with a one-time code or a token. */
export async function signIn(credential: { code: string } | { token: string }): Promise<void> {
  const answer = await sessionRequest('POST', credential);
  if (!answer.ok) throw problemOf(answer.status, await answer.json().catch(() => null));
}

/** signOut ends the session on the server. */
export async function signOut(): Promise<void> {
  const answer = await sessionRequest('DELETE');
  if (!answer.ok && answer.status !== 401) {
    throw problemOf(answer.status, await answer.json().catch(() => null));
  }
}
