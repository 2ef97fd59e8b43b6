// What the page uses of htm-preact.js; read by tsc only.
export class Component<P = any, S = any> { props: P; state: S; setState(change: Partial<S>): void; render(props: P): any; [more: string]: any }
export function html(strings: TemplateStringsArray, ...values: any[]): any;
export function render(tree: any, parent: HTMLElement): void;
export function useState<T>(first: T): [T, (next: T | ((last: T) => T)) => void];
export function useEffect(then: () => void | (() => void), inputs?: any[]): void;
export function useLayoutEffect(then: () => void | (() => void), inputs?: any[]): void;
export function useRef<T>(first: T): { current: T };
