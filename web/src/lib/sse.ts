/** SSEEvent is one event of a server-sent event stream. */
export interface SSEEvent {
  id: string;
  event: string;
  data: string;
}

/** SSEParser turns pieces of a stream into events. Pieces may end anywhere, also inside a line. */
export class SSEParser {
  private rest = '';
  private id = '';
  private event = '';
  private data: string[] = [];

  /** push returns the events that piece completes. */
  push(piece: string): SSEEvent[] {
    const out: SSEEvent[] = [];
    this.rest += piece;
    for (;;) {
      const end = this.rest.search(/[\r\n]/);
      if (end < 0) break;
      const cr = this.rest[end] === '\r';
      if (cr && end + 1 === this.rest.length) break; // a \n may follow in the next piece
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + (cr && this.rest[end + 1] === '\n' ? 2 : 1));
      const event = this.line(line);
      if (event) out.push(event);
    }
    return out;
  }

  private line(line: string): SSEEvent | null {
    if (line === '') {
      const event = { id: this.id, event: this.event || 'message', data: this.data.join('\n') };
      const isEmpty = this.data.length === 0 && this.event === '';
      this.event = '';
      this.data = [];
      return isEmpty ? null : event;
    }
    if (line.startsWith(':')) return null;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') this.id = value;
    else if (field === 'event') this.event = value;
    else if (field === 'data') this.data.push(value);
    return null;
  }
}
