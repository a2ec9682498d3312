import { useEffect, useRef, type ReactNode } from 'react';
import { useVirtualizer } from '@tanstack/react-virtual';

/** VirtualList shows only the rows in view, so that its length does not matter. It asks for more near the end. */
export function VirtualList<T>({ rows, rowHeight, label, render, keyOf, onEnd, className = 'virtual' }: {
  rows: T[]; rowHeight: number; label: string; render: (row: T, index: number) => ReactNode; keyOf: (row: T) => string;
  onEnd?: () => void; className?: string;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => rowHeight, overscan: 12,
    getItemKey: (i) => { const row = rows[i]; return row === undefined ? i : keyOf(row); },
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 30) onEnd?.();
  }, [last, rows.length, onEnd]);
  return (
    <div className={className} ref={scroller} role="group" aria-label={label} tabIndex={-1}>
      <div style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index];
          return row === undefined ? null : (
            <div
              key={item.key}
              style={{
                position: 'absolute',
                left: 0,
                right: 0,
                transform: `translateY(${item.start}px)`,
                height: item.size,
              }}
            >
              {render(row, item.index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
