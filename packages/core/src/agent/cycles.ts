interface Frame<T> {
  readonly node: T;
  readonly order: number;
  readonly next: Iterator<T>;
  /** The earliest node on the stack that this one leads back to. */
  low: number;
}

/** The nodes that can be reached from themselves (Tarjan's components, without recursion: graphs may be hostile). */
export function nodesOnCycles<T>(roots: Iterable<T>, edgesOf: (node: T) => Iterable<T>): Set<T> {
  const orders = new Map<T, number>();
  const stack: T[] = [];
  const open = new Set<T>();
  const onCycles = new Set<T>();
  const frames: Frame<T>[] = [];
  const enter = (node: T): void => {
    const order = orders.size;
    orders.set(node, order);
    stack.push(node);
    open.add(node);
    frames.push({ node, order, low: order, next: edgesOf(node)[Symbol.iterator]() });
  };
  const leave = ({ node, order, low }: Frame<T>): void => {
    const parent = frames.at(-1);
    if (parent) parent.low = Math.min(parent.low, low);
    if (low !== order) return;
    // The node and what was opened after it are one component.
    const component = stack.splice(stack.lastIndexOf(node));
    for (const member of component) {
      open.delete(member);
      if (component.length > 1) onCycles.add(member);
    }
  };
  for (const root of roots) {
    if (!orders.has(root)) enter(root);
    for (let frame = frames.at(-1); frame; frame = frames.at(-1)) {
      const step = frame.next.next();
      if (step.done) {
        frames.pop();
        leave(frame);
      } else {
        if (step.value === frame.node) onCycles.add(frame.node);
        const seen = orders.get(step.value);
        if (seen === undefined) enter(step.value);
        else if (open.has(step.value)) frame.low = Math.min(frame.low, seen);
      }
    }
  }
  return onCycles;
}
