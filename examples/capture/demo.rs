//! Panics, and captures the panic on standard error.

mod panic_hook;

#[inline(never)]
fn element(numbers: &[u32], at: usize) -> u32 {
    numbers[at]
}

#[inline(never)]
fn sum_of_four(numbers: &[u32]) -> u32 {
    (0..4).map(|at| element(numbers, at)).sum()
}

fn main() {
    panic_hook::install();
    let numbers: Vec<u32> = std::env::args().map(|argument| argument.len() as u32).collect();
    println!("{}", sum_of_four(&numbers));
}
