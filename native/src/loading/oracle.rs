//! Brute force for the tests of both methods.

/// The sum of the values in each bin.
pub fn sums(values: &[u64], bin_of_row: &[u32], bins: u32) -> Vec<u128> {
    let mut sums = vec![0; bins as usize];
    for (&value, &bin) in values.iter().zip(bin_of_row) {
        sums[bin as usize] += u128::from(value);
    }
    sums
}

/// The least possible load of the fullest bin, from every assignment.
pub fn least_maximum(costs: &[u64], bins: usize) -> u128 {
    fn search(costs: &[u64], loads: &mut [u128]) -> u128 {
        let Some((&cost, others)) = costs.split_first() else {
            return loads.iter().copied().max().unwrap_or(0);
        };
        let mut least = u128::MAX;
        for bin in 0..loads.len() {
            if !loads[..bin].contains(&loads[bin]) {
                // bins of equal load are alike
                loads[bin] += u128::from(cost);
                least = least.min(search(others, loads));
                loads[bin] -= u128::from(cost);
            }
        }
        least
    }
    search(costs, &mut vec![0; bins])
}
