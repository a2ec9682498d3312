import { useEffect, useRef, useState, type ReactNode, type RefObject } from 'react';
import { useRouter } from '@tanstack/react-router';
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components';
import { FieldErrors } from './field-errors';
import { Button } from './kit';
import { Inert } from './text';
import { useUnsaved } from './unsaved';

/**
 * Dialog asks the person something. Its first field gets the focus, or the first button of a question, and the focus
 * returns to where it was. Escape and a click outside close it. After the person typed something a click outside does
 * nothing, and Escape and leaving the page ask first. A dialog to keep closes by its own buttons only.
 */
export function Dialog({ title, wide, keep, onClose, children }: {
  title: string; wide?: boolean; keep?: boolean; onClose: () => void; children: ReactNode;
}) {
  const [isDiscarding, setDiscarding] = useState(false);
  const first = useRef<Texts>(new Map());
  const router = useRouter({ warn: false }); // the list of keys is outside of the router
  const isTyped = () =>
    [...first.current].some(([field, text]) => field.isConnected && (textOf(field) ?? text) !== text);
  return (
    <ModalOverlay
      className="modal-shade"
      isOpen
      isDismissable={!keep}
      isKeyboardDismissDisabled={keep}
      shouldCloseOnInteractOutside={() => !isTyped()}
      onOpenChange={(open) => {
        if (!open && isTyped()) setDiscarding(true);
        else if (!open) onClose();
      }}
    >
      <Modal className={wide ? 'modal wide' : 'modal'}>
        <AriaDialog className="dialog">
          <Heading slot="title" level={2}>
            <Inert text={title} />
          </Heading>
          <FieldErrors>
            <Body first={first}>{children}</Body>
          </FieldErrors>
          {isDiscarding && <Discard onKeep={() => setDiscarding(false)} onDiscard={onClose} />}
          {router && <LeaveGuard isTyped={isTyped} onClose={onClose} />}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

// LeaveGuard asks before the person leaves the page and loses what they typed.
function LeaveGuard({ isTyped, onClose }: { isTyped: () => boolean; onClose: () => void }) {
  const leaving = useUnsaved(isTyped);
  if (!leaving.isAsked) return null;
  const discard = () => {
    leaving.leave();
    onClose();
  };
  return <Discard onKeep={leaving.stay} onDiscard={discard} />;
}

function Discard({ onKeep, onDiscard }: { onKeep: () => void; onDiscard: () => void }) {
  return (
    <Dialog title="Discard what you typed?" onClose={onKeep}>
      <div className="actions">
        <Button onClick={onKeep}>Keep editing</Button>
        <Button kind="bad" onClick={onDiscard}>Discard</Button>
      </div>
    </Dialog>
  );
}

const FIELDS = 'input:not([type=hidden], [type=file], [disabled]), select:not([disabled]), textarea:not([disabled])';

/** Texts has the text that each field had at first. */
type Texts = Map<Element, string>;

// Body gives the focus to the first field of a dialog, or to the first button of a question. It keeps what the texts
// were at first.
function Body({ first, children }: { first: RefObject<Texts>; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const keep = (field: EventTarget | null) => {
      const text = field instanceof Element ? textOf(field) : undefined;
      if (text !== undefined && !first.current.has(field as Element)) first.current.set(field as Element, text);
    };
    const onEvent = (e: Event) => keep(e.target);
    element.querySelectorAll('input, textarea').forEach(keep);
    element.addEventListener('focusin', onEvent);
    element.addEventListener('beforeinput', onEvent);
    if (!element.contains(document.activeElement))
      (element.querySelector<HTMLElement>(FIELDS) ?? element.querySelector<HTMLElement>('.actions .btn'))?.focus();
    return () => {
      element.removeEventListener('focusin', onEvent);
      element.removeEventListener('beforeinput', onEvent);
    };
  }, [first]);
  return <div className="dialog-body" ref={box}>{children}</div>;
}

// textOf returns the text of a field or a code editor, and undefined for anything else.
function textOf(element: Element): string | undefined {
  if (element instanceof HTMLTextAreaElement) return element.value;
  if (element instanceof HTMLInputElement) return /^(checkbox|radio|search)$/.test(element.type) ? undefined : element.value;
  return element.shadowRoot?.querySelector('.cm-content')?.textContent ?? undefined;
}
