//! Units of measurement, and nouns that are used like them.

/// Units that are written without `\text`. Each row starts with the name that stands for the others.
const UNITS: [&[&str]; 52] = [
    &["degree", "degrees", "deg"],
    &["percent"],
    &["dollar", "dollars", "usd"],
    &["cent", "cents"],
    &["euro", "euros"],
    &["pound", "pounds", "lb", "lbs"],
    &["ounce", "ounces", "oz"],
    &["millimeter", "millimeters", "mm"],
    &["centimeter", "centimeters", "centimetre", "centimetres", "cm", "cms"],
    &["meter", "meters", "metre", "metres", "m"],
    &["kilometer", "kilometers", "kilometre", "kilometres", "km"],
    &["inch", "inches", "in"],
    &["foot", "feet", "ft"],
    &["yard", "yards", "yd"],
    &["mile", "miles", "mi"],
    &["milligram", "milligrams", "mg"],
    &["gram", "grams", "g"],
    &["kilogram", "kilograms", "kg"],
    &["milliliter", "milliliters", "ml"],
    &["liter", "liters", "litre", "litres", "l"],
    &["second", "seconds", "sec", "secs", "s"],
    &["minute", "minutes", "min", "mins"],
    &["hour", "hours", "hr", "hrs", "h"],
    &["day", "days"],
    &["week", "weeks"],
    &["month", "months"],
    &["year", "years", "yr", "yrs"],
    &["mph"],
    &["kph"],
    &["radian", "radians", "rad"],
    &["unit", "units"],
    &["cup", "cups"],
    &["pint", "pints"],
    &["piece", "pieces"],
    &["pie", "pies"],
    &["pizza", "pizzas"],
    &["page", "pages"],
    &["person", "people"],
    &["man", "men"],
    &["woman", "women"],
    &["boy", "boys"],
    &["egg", "eggs"],
    &["cow", "cows"],
    &["dog", "dogs"],
    &["cat", "cats"],
    &["way", "ways"],
    &["ton", "tons"],
    &["time", "times"],
    &["square", "sq"],
    &["cubic", "cu"],
    &["per"],
    &["logs"],
];

/// Whether a plain word is a unit.
pub fn is_unit(word: &str) -> bool {
    word.len() > 1 && UNITS.iter().any(|names| names.contains(&word))
}

/// The canonical spelling of a unit: `square centimeters`, `sq cm` and `cm^2` are all `centimeter^2`.
///
/// It is empty for a word that counts in no unit, as "units" does.
pub fn canonical(unit: &str, exponent: u32) -> String {
    let mut power = exponent.max(1);
    let mut names = Vec::new();
    let unit = unit.to_lowercase();
    for word in unit.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
    {
        match word {
            "square" | "squared" | "sq" | "2" => power = 2,
            "cubic" | "cubed" | "cu" | "3" => power = 3,
            "unit" | "units" | "of" | "total" => {}
            _ => names.push(one(word)),
        }
    }
    match (names.is_empty(), power) {
        (true, _) => String::new(),
        (false, 1) => names.join(" "),
        (false, power) => format!("{}^{power}", names.join(" ")),
    }
}

/// The singular of a unit, or of a noun as far as its last letter tells it.
fn one(word: &str) -> &str {
    let row = UNITS.iter().find(|names| names.contains(&word));
    row.map_or_else(|| word.strip_suffix('s').unwrap_or(word), |names| names[0])
}
