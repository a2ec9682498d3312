import type { ReactNode } from 'react';
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components';

/** Dialog asks the person something. Escape and a click outside close it; focus returns to where it was. */
export function Dialog({ title, wide, onClose, children }: {
  title: string; wide?: boolean; onClose: () => void; children: ReactNode;
}) {
  return (
    <ModalOverlay className="modal-shade" isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={wide ? 'modal wide' : 'modal'}>
        <AriaDialog className="dialog">
          <Heading slot="title" level={2}>
            {title}
          </Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
