import { describe, expect, test } from 'vitest';
import { UserError } from './errors.ts';
import { checkOptions, kinds, nearestName } from './options.ts';

describe('checkOptions', () => {
  test('an unknown key is refused, with the option that was probably meant', () => {
    const check = (options: object) => () => checkOptions(options, ['maxTurns', 'signal', 'session'], 'run()');
    expect(check({ maxTurn: 3 })).toThrow(UserError);
    expect(check({ maxTurn: 3 })).toThrow("Unknown option 'maxTurn' of run(). Did you mean 'maxTurns'?");
    expect(check({ max_turns: 3 })).toThrow("Did you mean 'maxTurns'?");
    expect(check({ zzz: 'secret' })).toThrow("Unknown option 'zzz' of run(). Known: maxTurns, signal, session.");
    expect(check({ maxTurns: 3, signal: undefined })).not.toThrow();
  });

  test('an unknown key is refused also when its value is undefined', () => {
    expect(() => checkOptions({ nope: undefined }, ['yes'], 'run()')).toThrow(/Unknown option 'nope'/);
  });

  test('undefined counts as not given; a wrong kind is named without the value', () => {
    const checks = {
      name: kinds.nonEmptyString,
      limit: kinds.nullable(kinds.integer(1)),
      when: kinds.either(kinds.boolean, kinds.function),
    };
    const check = (options: object) => () => checkOptions(options, checks, 'Agent');
    expect(check({ name: undefined, limit: null, when: () => true })).not.toThrow();
    expect(check({ name: ' ' })).toThrow("Option 'name' of Agent must be a string that is not empty, not a string.");
    expect(check({ limit: 0 })).toThrow("Option 'limit' of Agent must be an integer of at least 1 or null, not 0.");
    expect(check({ limit: 1.5 })).toThrow('not a fraction');
    expect(check({ when: 'secret' })).toThrow(
      "Option 'when' of Agent must be true or false or a function, not a string.",
    );
  });

  test('no options are fine, anything but an object is not', () => {
    expect(() => checkOptions(undefined, [], 'run()')).not.toThrow();
    for (const wrong of [null, 3, 'x', [], () => {}])
      expect(() => checkOptions(wrong, [], 'run()')).toThrow(/must be an object/);
  });

  test('names of Object.prototype are no options', () => {
    expect(() => checkOptions({ toString: 1 }, { name: kinds.string }, 'Agent')).toThrow(/Unknown option 'toString'/);
  });
});

test.each([
  ['hook', ['hooks', 'tools'], 'hooks'],
  ['instruction', ['instructions'], 'instructions'],
  ['MODEL', ['model', 'modelSettings'], 'model'],
  ['x', ['name'], undefined],
  ['foobar', ['model'], undefined],
])('the nearest name of %s among %j is %s', (name, known, nearest) => {
  expect(nearestName(name, known)).toBe(nearest);
});
