import { DatabaseSync } from 'node:sqlite';

/** Money in euros. */
export interface Order {
  orderId: string;
  customer: string;
  item: string;
  status: 'processing' | 'shipped' | 'delivered' | 'refunded';
  total: number;
  refunded: number;
}

/** What the shop refuses; the text is meant for people and models. */
export class OrderError extends Error {}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, customer TEXT NOT NULL, item TEXT NOT NULL, status TEXT NOT NULL, total_cents INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS refunds (
    idempotency_key TEXT PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders (id), cents INTEGER NOT NULL, reason TEXT
  ) STRICT;`;

const FIRST_ORDERS = [
  ['1041', 'Ana Silva', 'Desk lamp', 'shipped', 3450],
  ['1042', 'Ben Okafor', 'Headphones', 'delivered', 8900],
  ['1043', 'Chen Wei', 'Standing desk', 'delivered', 42000],
  ['1044', 'Dana Novak', 'Monitor arm', 'processing', 6490],
] as const;

const SELECT_ORDER = `
  SELECT id AS orderId, customer, item, status, total_cents / 100.0 AS total,
    coalesce((SELECT sum(cents) FROM refunds WHERE order_id = orders.id), 0) / 100.0 AS refunded
  FROM orders`;

/** The shop's orders in an SQLite file, which begins with four orders when it is new. */
export class Orders {
  readonly #db: DatabaseSync;

  constructor(path: string) {
    this.#db = new DatabaseSync(path, { timeout: 2000 });
    try {
      this.#transaction(() => {
        this.#db.exec(SCHEMA);
        const insert = this.#db.prepare('INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?, ?)');
        for (const order of FIRST_ORDERS) insert.run(...order);
      });
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  /** @throws OrderError for an unknown number */
  find(orderId: string): Order {
    const order = this.#db.prepare(`${SELECT_ORDER} WHERE id = ?`).get(orderId.replace(/^#/, ''));
    if (order === undefined) throw new OrderError(`There is no order ${orderId}.`);
    return { ...order } as unknown as Order;
  }

  all(): Order[] {
    return this.#db.prepare(`${SELECT_ORDER} ORDER BY id`).all() as unknown as Order[];
  }

  /** How many refunds were paid for an order. */
  countRefunds(orderId: string): number {
    return Number(this.#db.prepare('SELECT count(*) AS n FROM refunds WHERE order_id = ?').get(orderId)?.['n']);
  }

  /**
   * Pays money back. The same key again changes nothing: whoever is not sure that a refund happened may repeat it.
   *
   * @throws OrderError when the order is unknown or the amount is more than is left of it
   */
  refund(orderId: string, amount: number, reason: string | null, idempotencyKey: string): Order {
    return this.#transaction(() => {
      const order = this.find(orderId);
      const known = this.#db.prepare('SELECT 1 FROM refunds WHERE idempotency_key = ?').get(idempotencyKey);
      if (known !== undefined) return order;
      const cents = Math.round(amount * 100);
      const left = Math.round((order.total - order.refunded) * 100);
      if (!(cents > 0 && cents <= left)) {
        throw new OrderError(
          `Of order ${order.orderId} up to ${(left / 100).toFixed(2)} can be refunded, not ${amount}.`,
        );
      }
      this.#db.prepare('INSERT INTO refunds VALUES (?, ?, ?, ?)').run(idempotencyKey, order.orderId, cents, reason);
      if (cents === left) this.#db.prepare("UPDATE orders SET status = 'refunded' WHERE id = ?").run(order.orderId);
      return this.find(order.orderId);
    });
  }

  close(): void {
    this.#db.close();
  }

  #transaction<T>(work: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}
