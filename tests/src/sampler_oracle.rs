//! The samplers a second time, written down plainly from `docs/sampling.md`: one index at a time, wide integers,
//! `/` and `%`, nothing kept between two calls that a call does not need.

/// The golden ratio's odd constant of 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(x: u64) -> u64 {
    let mut x = u128::from(x);
    let mask = u128::from(u64::MAX);
    x = ((x ^ (x >> 30)) * 0xbf58_476d_1ce4_e5b9) & mask;
    x = ((x ^ (x >> 27)) * 0x94d0_49bb_1331_11eb) & mask;
    low(x ^ (x >> 31))
}

fn low(x: u128) -> u64 {
    u64::try_from(x & u128::from(u64::MAX)).unwrap()
}

fn size(x: u64) -> usize {
    usize::try_from(x).unwrap()
}

/// The words of (seed, domain, counter).
#[derive(Clone, Copy)]
pub struct Words {
    offset: u64,
    twist: u64,
}

impl Words {
    /// The stream of a seed, the number of a domain and a counter.
    pub fn new(seed: u64, domain: u64, counter: u64) -> Self {
        let base = mix(seed ^ domain.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self {
            offset: mix(base ^ counter),
            twist: mix(base.rotate_left(32).wrapping_add(counter.wrapping_mul(GOLDEN))),
        }
    }

    /// The word of an index.
    pub fn word(self, index: u64) -> u64 {
        let x = self.offset.wrapping_add(index.wrapping_mul(GOLDEN));
        let product = u128::from(x) * u128::from(x ^ self.twist);
        low(product) ^ low(product >> 64)
    }

    /// The number below `n` of an index.
    pub fn below(self, n: u64, index: u64) -> u64 {
        let excess = low((1_u128 << 64) % u128::from(n));
        for attempt in 0.. {
            let offset = if attempt == 0 { self.offset } else { mix(self.offset ^ attempt) };
            let product = u128::from(Self { offset, ..self }.word(index)) * u128::from(n);
            if low(product) >= excess {
                return low(product >> 64);
            }
        }
        unreachable!("some word is not in excess")
    }
}

/// The sides of the network that permutes `len` values.
pub fn sides(len: u64) -> (u64, u64) {
    // From the smallest a with a * a >= len on, 16 candidates: the first of those that exceed the length least.
    let root = (0..=20).rev().fold(0_u64, |root, bit| {
        let larger = root | 1 << bit;
        if larger * larger <= len { larger } else { root }
    });
    let smallest = if root * root == len { root } else { root + 1 };
    let candidates = (smallest..smallest + 16).map(|a| (a, len.div_ceil(a)));
    candidates.filter(|(a, b)| *a == smallest || *b >= 64).min_by_key(|(a, b)| a * b).unwrap()
}

/// The permutation of `len` values of (seed, domain, counter), as a function of the position.
pub fn permutation(len: u64, seed: u64, domain: u64, counter: u64) -> Box<dyn Fn(u64) -> u64> {
    let words = Words::new(seed, domain, counter);
    if len <= 4096 {
        let mut table: Vec<u64> = (0..len).collect();
        for i in 0..len {
            let j = i + words.below(len - i, i);
            table.swap(size(i), size(j));
        }
        return Box::new(move |position| table[size(position)]);
    }
    let (a, b) = sides(len);
    let narrow = len <= 1 << 28;
    let function = move |round: u64, half: u64, side: u64| {
        if narrow {
            let key = words.word(round);
            let x = (half ^ (key % 65536)) * (((key >> 16) % 65536) | 1) % 65536;
            let x = (x ^ (x / 256)) * (((key >> 32) % 65536) | 1) % 65536;
            x * side / 65536
        } else {
            let (first, second) = (words.word(2 * round), words.word(2 * round + 1));
            let two32 = 1_u64 << 32;
            let x = (half ^ (first % two32)) * (first >> 32 | 1);
            let x = ((x % two32) ^ (x / two32)) * ((second % two32) | 1);
            ((x % two32) ^ (x / two32)) * side / two32
        }
    };
    Box::new(move |position| {
        let mut value = position;
        loop {
            let (mut l, mut r) = (value / b, value % b);
            for round in (0..8).step_by(2) {
                l = (l + function(round, r, a)) % a;
                r = (r + function(round + 1, l, b)) % b;
            }
            value = l * b + r;
            if value < len {
                return value;
            }
        }
    })
}

/// `Sequential`.
pub fn sequential(len: u64, batch: u64, step: u64) -> Vec<u64> {
    let start = u128::from(step) * u128::from(batch);
    (0..batch).map(|i| low((start + u128::from(i)) % u128::from(len))).collect()
}

/// `Pass`.
pub fn pass(len: u64, batch: u64, step: u64) -> Vec<u64> {
    let start = u128::from(step) * u128::from(batch);
    (0..batch).map(|i| start + u128::from(i)).filter(|i| *i < u128::from(len)).map(low).collect()
}

/// `Iid`.
pub fn iid(len: u64, batch: u64, seed: u64, step: u64) -> Vec<u64> {
    (0..batch).map(|i| Words::new(seed, 1, step).below(len, i)).collect()
}

/// `Cyclic`; the tail by its name.
pub fn cyclic(len: u64, batch: u64, seed: u64, tail: &str, step: u64) -> Vec<u64> {
    // (cycle, position) of each index of the batch
    let places: Vec<(u64, u64)> = match tail {
        "wrap" => (0..batch)
            .map(|i| u128::from(step) * u128::from(batch) + u128::from(i))
            .map(|p| (low(p / u128::from(len)), low(p % u128::from(len))))
            .collect(),
        "drop" => {
            let per_cycle = len / batch;
            (0..batch).map(|i| (step / per_cycle, step % per_cycle * batch + i)).collect()
        }
        "short" => {
            let per_cycle = len.div_ceil(batch);
            let all = (0..batch).map(|i| (step / per_cycle, step % per_cycle * batch + i));
            all.filter(|(_, position)| *position < len).collect()
        }
        other => panic!("no tail is named {other}"),
    };
    let mut cycles = std::collections::BTreeMap::new();
    places
        .into_iter()
        .map(|(cycle, p)| cycles.entry(cycle).or_insert_with(|| permutation(len, seed, 2, cycle))(p))
        .collect()
}

/// The records of a part of a `split`, in the order of its positions.
pub fn split(records: u64, fractions: &[f64], seed: u64, part: usize) -> Vec<u64> {
    let bound = |parts: &[f64]| {
        let end = (records as f64 * parts.iter().sum::<f64>()).round() as u64;
        end.min(records)
    };
    let permutation = permutation(records, seed, 3, 0);
    (bound(&fractions[..part])..bound(&fractions[..=part])).map(permutation).collect()
}

/// `Weighted`.
pub fn weighted(weights: &[f64], batch: u64, seed: u64, step: u64) -> Vec<u64> {
    let n = weights.len();
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    let scale = (1_u64 << 62) as f64 / sum;
    let masses: Vec<u64> = weights
        .iter()
        .map(|weight| if *weight == 0.0 { 0 } else { ((weight / largest * scale) as u64).max(1) })
        .collect();
    let total: u64 = masses.iter().sum();
    let mut left: Vec<u128> = masses.iter().map(|mass| u128::from(*mass) * n as u128).collect();
    let mut columns: Vec<(u64, usize)> = (0..n).map(|i| (total, i)).collect();
    let mut small: Vec<usize> = (0..n).filter(|i| left[*i] < u128::from(total)).collect();
    let mut large: Vec<usize> = (0..n).filter(|i| left[*i] >= u128::from(total)).collect();
    while let Some(lesser) = small.pop() {
        let greater = *large.last().unwrap();
        columns[lesser] = (low(left[lesser]), greater);
        left[greater] -= u128::from(total) - left[lesser];
        if left[greater] < u128::from(total) {
            small.push(large.pop().unwrap());
        }
    }
    let words = Words::new(seed, 4, step);
    (0..batch)
        .map(|i| {
            let column = words.below(n as u64, 2 * i);
            let (mark, other) = columns[size(column)];
            if words.below(total, 2 * i + 1) < mark { column } else { other as u64 }
        })
        .collect()
}

enum Tree {
    Source(usize),
    Node { share: u64, phase: u64, left: Box<Tree>, right: Box<Tree> },
}

/// `Mixture`, turn by turn.
pub fn mixture(sources: &[(u64, f64)], batch: u64, seed: u64, step: u64) -> Vec<u64> {
    let largest = sources.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
    let mut parts: Vec<(f64, Tree)> = Vec::new();
    for (number, (_, weight)) in sources.iter().enumerate().filter(|(_, (_, weight))| *weight > 0.0) {
        let weight = weight / largest;
        let place = parts.iter().position(|(other, _)| *other < weight).unwrap_or(parts.len());
        parts.insert(place, (weight, Tree::Source(number)));
    }
    let mut nodes = 0;
    while parts.len() > 1 {
        let ((right_weight, right), (left_weight, left)) = (parts.pop().unwrap(), parts.pop().unwrap());
        let weight = left_weight + right_weight;
        let share = (left_weight / weight * 4_294_967_296.0).round() as u64;
        let tree = Tree::Node {
            share: share.clamp(1, (1 << 32) - 1),
            phase: Words::new(seed, 6, 0).word(nodes) >> 32,
            left: Box::new(left),
            right: Box::new(right),
        };
        nodes += 1;
        let place = parts.iter().position(|(other, _)| *other <= weight).unwrap_or(parts.len());
        parts.insert(place, (weight, tree));
    }
    let (_, root) = parts.pop().unwrap();
    let draw = |turn: u128| {
        let (mut tree, mut turn) = (&root, turn);
        loop {
            match tree {
                Tree::Source(number) => return (*number, turn),
                Tree::Node { share, phase, left, right } => {
                    let lefts = |turns: u128| (turns * u128::from(*share) + u128::from(*phase)) >> 32;
                    if lefts(turn + 1) > lefts(turn) {
                        (tree, turn) = (left, lefts(turn));
                    } else {
                        (tree, turn) = (right, turn - lefts(turn));
                    }
                }
            }
        }
    };
    (0..batch)
        .map(|i| {
            let (number, position) = draw(u128::from(step) * u128::from(batch) + u128::from(i));
            let len = sources[number].0;
            let first: u64 = sources[..number].iter().map(|(len, _)| len).sum();
            let own = Words::new(seed, 5, number as u64).word(0);
            let cycle = low(position / u128::from(len));
            first + permutation(len, own, 2, cycle)(low(position % u128::from(len)))
        })
        .collect()
}

/// The records sorted by length and cut where `cut(group so far, next length)` says so.
fn groups(lengths: &[u32], cut: impl Fn(&[u64], u64) -> bool) -> Vec<Vec<u64>> {
    let mut records: Vec<u64> = (0..lengths.len() as u64).collect();
    records.sort_by_key(|record| lengths[size(*record)]);
    let mut groups: Vec<Vec<u64>> = Vec::new();
    for record in records {
        match groups.last_mut() {
            Some(group) if !cut(group, u64::from(lengths[size(record)])) => group.push(record),
            _ => groups.push(vec![record]),
        }
    }
    groups
}

/// Shuffles each group, cuts it into batches of its size, and takes the batch of the step in shuffled order.
fn planned(groups: &[Vec<u64>], sizes: &[usize], short: bool, seed: u64, step: u64) -> Vec<u64> {
    let mut batches = Vec::new();
    for (number, size) in sizes.iter().enumerate() {
        let members = groups[number].len();
        let count = if short { members.div_ceil(*size) } else { members / size };
        batches.extend((0..count).map(|batch| (number, batch * size..(batch * size + size).min(members))));
    }
    let per_cycle = batches.len() as u64;
    let cycle = step / per_cycle;
    let (number, range) = &batches[size(permutation(per_cycle, seed, 7, cycle)(step % per_cycle))];
    let group = &groups[*number];
    let own = Words::new(seed, 8, *number as u64).word(0);
    let shuffle = permutation(group.len() as u64, own, 2, cycle);
    range.clone().map(|position| group[size(shuffle(position as u64))]).collect()
}

/// `Bucketed`; the tail by its name.
pub fn bucketed(lengths: &[u32], buckets: usize, batch: usize, tail: &str, seed: u64, step: u64) -> Vec<u64> {
    let mut rest: Vec<u64> = groups(lengths, |_, _| false).concat();
    let mut parts = Vec::new();
    for bucket in 0..buckets {
        let count = lengths.len() / buckets + usize::from(bucket < lengths.len() % buckets);
        let behind = rest.split_off(count);
        parts.push(std::mem::replace(&mut rest, behind));
    }
    planned(&parts, &vec![batch; buckets], tail == "short", seed, step)
}

/// `TokenBudget::padded`.
pub fn padded(lengths: &[u32], tokens: u64, seed: u64, step: u64) -> Vec<u64> {
    let length = |record: &u64| u64::from(lengths[size(*record)]);
    let groups = groups(lengths, |group, next| {
        let (shortest, longest) = (length(&group[0]), length(group.last().unwrap()));
        let four_batches = group.len() as u64 * longest.max(1) >= 4 * tokens;
        next > shortest + shortest / 32 && four_batches || next / 2 > shortest
    });
    let size_of = |group: &Vec<u64>| {
        let longest = length(group.last().unwrap());
        group.len().min(size(tokens / longest.max(1)))
    };
    let sizes: Vec<usize> = groups.iter().map(size_of).collect();
    planned(&groups, &sizes, true, seed, step)
}

/// `TokenBudget::packed`.
pub fn packed(lengths: &[u32], tokens: u64, seed: u64, step: u64) -> Vec<u64> {
    let length = |record: &u64| u64::from(lengths[size(*record)]);
    let classes = groups(lengths, |class, next| next > length(&class[0]) + length(&class[0]) / 16);
    // (class, member) of each place in the order of lengths
    let places: Vec<(usize, usize)> = classes
        .iter()
        .enumerate()
        .flat_map(|(number, class)| (0..class.len()).map(move |member| (number, member)))
        .collect();
    let sequence = permutation(places.len() as u64, seed, 9, 0);
    let mut batches = vec![Vec::new()];
    let mut used = 0;
    for position in 0..places.len() as u64 {
        let (class, member) = places[size(sequence(position))];
        let counted = length(classes[class].last().unwrap()).max(1);
        if used + counted > tokens {
            batches.push(Vec::new());
            used = 0;
        }
        used += counted;
        batches.last_mut().unwrap().push((class, member));
    }
    let per_cycle = batches.len() as u64;
    let cycle = step / per_cycle;
    batches[size(permutation(per_cycle, seed, 7, cycle)(step % per_cycle))]
        .iter()
        .map(|(class, member)| {
            let own = Words::new(seed, 8, *class as u64).word(0);
            let members = &classes[*class];
            members[size(permutation(members.len() as u64, own, 2, cycle)(*member as u64))]
        })
        .collect()
}
