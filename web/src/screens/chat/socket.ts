import { useEffect, useReducer, useRef, useState } from 'react';
import { api, currentWorkspace, ok, type ApiError } from '../../api/client';
import { addFrame, EMPTY_LOG, type Frame, type Log } from '../../lib/chat';

type Action = Frame[] | 'reset';

function reduce(log: Log, action: Action): Log {
  return action === 'reset' ? EMPTY_LOG : action.reduce(addFrame, log);
}

/**
 * useConversation follows a conversation over its WebSocket. It reconnects with the last number it saw, so that each
 * stored frame arrives once.
 */
export function useConversation(id: string) {
  const [log, dispatch] = useReducer(reduce, EMPTY_LOG);
  const [state, setState] = useState<'connecting' | 'open' | 'closed'>('connecting');
  const [error, setError] = useState<unknown>(null);
  const [refused, setRefused] = useState('');
  const socket = useRef<WebSocket | null>(null);
  const seq = useRef(0);
  seq.current = log.seq;

  useEffect(() => {
    let isOver = false;
    let failures = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    dispatch('reset');
    seq.current = 0;
    const connect = () => {
      const after = seq.current;
      const url = new URL(
        `/conversations/${id}?workspace=${encodeURIComponent(currentWorkspace())}&after=${after}`,
        location.href,
      );
      url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
      const ws = new WebSocket(url, ['reeve']);
      socket.current = ws;
      let pending: Frame[] = [];
      ws.onopen = () => {
        failures = 0;
        setState('open');
        setError(null);
      };
      ws.onmessage = (m: MessageEvent<string>) => {
        const frame = JSON.parse(m.data) as Frame;
        if (frame.type === 'error' && frame.seq === undefined)
          setRefused([frame.message, frame.hint].filter(Boolean).join('. '));
        if (pending.length === 0)
          requestAnimationFrame(() => {
            const batch = pending;
            pending = [];
            if (!isOver) dispatch(batch);
          });
        pending.push(frame);
      };
      ws.onclose = () => {
        if (isOver) return;
        setState('closed');
        if (failures++ === 0) return void (timer = setTimeout(connect, 300));
        // A browser cannot see why a WebSocket was refused; the list of frames says it.
        ok(api.GET('/api/conversations/{id}/frames', { params: { path: { id }, query: { after, limit: 1 } } }))
          .catch((e: ApiError) => {
            if (e.code === 'STALE') {
              dispatch('reset');
              seq.current = 0;
            } else if (e.status !== 0) setError(e);
          })
          .finally(() => {
            if (!isOver) timer = setTimeout(connect, Math.min(10_000, 500 * 2 ** failures));
          });
      };
    };
    connect();
    return () => {
      isOver = true;
      clearTimeout(timer);
      socket.current?.close();
    };
  }, [id]);

  const send = (frame: Record<string, unknown>) => {
    if (socket.current?.readyState !== WebSocket.OPEN) return false;
    setRefused('');
    socket.current.send(JSON.stringify(frame));
    return true;
  };
  return { log, state, error, refused, send };
}
