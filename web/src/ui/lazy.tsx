import { useEffect, useState, type ComponentType, type FunctionComponent } from 'react';
import { Failure, Loading } from './states';

/**
 * Lazy is a component whose code loads when it is first shown, or before by preload, which never fails. Once the code is
 * there preload is absent, so that the router shows the component at once.
 */
export type Lazy<P> = FunctionComponent<P> & { preload?: () => Promise<void> };

/**
 * lazyPart returns a component whose code loads when it is needed. While the server cannot be reached it shows a
 * failure in its place, and loads again when the person asks for it.
 */
export function lazyPart<P extends object>(load: () => Promise<ComponentType<P>>): Lazy<P> {
  let part: ComponentType<P> | undefined;
  let loading: Promise<void> | undefined;
  let hasFailed = false;
  const read = () =>
    (loading ??= load().then(
      (loaded) => {
        part = loaded;
        Part.preload = undefined;
      },
      () => {
        hasFailed = true;
        loading = undefined;
      },
    ));
  const retry = async () => {
    await read();
    // Some browsers remember that code could not be loaded. If the server is back, only a new page loads it.
    if (!part && (await isServerThere())) location.reload();
  };
  const Part: Lazy<P> = (props) => {
    const [, setTries] = useState(0);
    const again = (ask: () => Promise<void>) => void ask().then(() => setTries((n) => n + 1));
    useEffect(() => {
      if (!part) again(read);
    }, []);
    if (part) {
      const Loaded = part;
      return <Loaded {...props} />;
    }
    if (hasFailed) return <Failure error={UNREACHABLE} retry={() => again(retry)} />;
    return <Loading />;
  };
  Part.preload = read;
  return Part;
}

const UNREACHABLE = new Error('This part of the page could not be loaded. Check that the server runs.');

async function isServerThere(): Promise<boolean> {
  try {
    return (await fetch('/', { method: 'HEAD', cache: 'no-store' })).ok;
  } catch {
    return false;
  }
}
