//! tmp
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = std::time::Instant::now();
    let options = nlac::dev::pretrain::Options { steps: a[2].parse().unwrap(), threads: a[3].parse().unwrap(), ..Default::default() };
    let r = nlac::dev::pretrain::pretrain(std::path::Path::new(&a[1]), options, |s, l| if s % 25 == 24 { println!("{s} {l:.4} {:?}", t.elapsed()) });
    println!("{r:?}");
}
