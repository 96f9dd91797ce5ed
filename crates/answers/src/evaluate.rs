//! Values of formulas.

use std::f64::consts::{E, PI};

use num_complex::Complex64;

use crate::{
    expression::{Expression, Function},
    limits::{Budget, Fault, MAX_EXPONENT, MAX_FACTORIAL},
    number::Rational,
    value::{Value, finite, invert, logarithm, longest, nonzero, round, shortened},
};

/// Evaluates formulas where the variables have fixed values.
pub struct Evaluator<'a> {
    /// Values of the variables.
    pub values: &'a dyn Fn(&str) -> Rational,
    /// The work that is left.
    pub budget: &'a mut Budget,
}

impl Evaluator<'_> {
    /// Computes the value of a formula.
    ///
    /// # Errors
    /// `Fault::Undefined` where the formula has no value, `Fault::TooComplex` where a bound is reached.
    pub fn value(&mut self, expression: &Expression) -> Result<Value, Fault> {
        match expression {
            Expression::Number(number) => Ok(Value::Exact(number.clone())),
            Expression::Symbol(name) => Ok(Value::Exact((self.values)(name))),
            Expression::Pi => Ok(PI.into()),
            Expression::Euler => Ok(E.into()),
            Expression::Imaginary => Ok(Complex64::I.into()),
            Expression::Infinity => Err(Fault::Undefined),
            // An answer with `\pm` is compared once for each sign.
            Expression::PlusMinus => Ok(Rational::from(1).into()),
            Expression::Negative(inner) => Ok(match self.value(inner)? {
                Value::Exact(number) => Value::Exact(number.negate()),
                Value::Approximate(number) => Value::Approximate(-number),
            }),
            Expression::Inverse(inner) => {
                let value = self.value(inner)?;
                invert(value)
            }
            Expression::Sum(terms) => {
                let mut sum = Value::from(Rational::from(0));
                for term in terms {
                    let term = self.value(term)?;
                    sum = self.combine(sum, term, Rational::add, |a, b| a + b)?;
                }
                Ok(sum)
            }
            Expression::Product(factors) => {
                let mut product = Value::from(Rational::from(1));
                for factor in factors {
                    let factor = self.value(factor)?;
                    product = self.multiply(product, factor)?;
                }
                Ok(product)
            }
            Expression::Power(base, exponent) => {
                let (base, exponent) = (self.value(base)?, self.value(exponent)?);
                self.power(base, exponent)
            }
            Expression::Root(index, radicand) => {
                let (index, radicand) = (self.value(index)?, self.value(radicand)?);
                self.power(radicand, invert(index)?)
            }
            Expression::LogarithmTo(base, argument) => {
                let (base, argument) = (self.value(base)?, self.value(argument)?);
                let (argument, base) = (logarithm(&argument)?, invert(logarithm(&base)?)?);
                self.multiply(argument, base)
            }
            Expression::Binomial(set, part) => {
                let (set, part) = (self.value(set)?, self.value(part)?);
                self.binomial(&set, &part)
            }
            Expression::Call(function, argument) => {
                let argument = self.value(argument)?;
                self.call(*function, argument)
            }
            Expression::Degrees(angle) => {
                let angle = self.value(angle)?;
                self.multiply(angle, (PI / 180.0).into())
            }
            Expression::Percent(number) => {
                let number = self.value(number)?;
                let hundredth = Rational::ratio(1, 100).ok_or(Fault::Undefined)?;
                self.multiply(number, hundredth.into())
            }
        }
    }

    fn combine(
        &mut self,
        a: Value,
        b: Value,
        exact: fn(&Rational, &Rational) -> Rational,
        approximate: fn(Complex64, Complex64) -> Complex64,
    ) -> Result<Value, Fault> {
        if let (Value::Exact(a), Value::Exact(b)) = (&a, &b) {
            self.budget.spend(a.bits(), b.bits())?;
            if !(a.is_integer() && b.is_integer()) {
                self.budget.spend_on_reduction(a.bits() + b.bits())?;
            }
            return shortened(exact(a, b));
        }
        self.budget.spend(0, 0)?;
        finite(approximate(a.to_complex(), b.to_complex()))
    }

    fn multiply(&mut self, a: Value, b: Value) -> Result<Value, Fault> {
        self.combine(a, b, Rational::multiply, |a, b| a * b)
    }

    fn power(&mut self, base: Value, exponent: Value) -> Result<Value, Fault> {
        if let (Value::Exact(base), Value::Exact(exponent)) = (&base, &exponent)
            && let Some(value) = self.exact_power(base, exponent)?
        {
            return Ok(Value::Exact(value));
        }
        self.budget.spend(0, 0)?;
        let zero = base.is_zero();
        if zero && !(exponent.is_real() && exponent.to_complex().re > 0.0) {
            return Err(Fault::Undefined);
        }
        if let (Value::Exact(number), Value::Exact(power)) = (&base, &exponent) {
            // Odd roots of negative numbers are real, as school mathematics has it.
            let odd = power.denominator().is_some_and(|index| index % 2 == 1);
            if !number.is_negative() || odd {
                let size = number.to_f64().abs().powf(power.to_f64());
                let even = power.numerator().multiply(&half()).is_integer();
                let negative = number.is_negative() && !even;
                return finite(if negative { -size } else { size }.into());
            }
        }
        if zero {
            return Ok(Rational::from(0).into());
        }
        finite(base.to_complex().powc(exponent.to_complex()))
    }

    /// The power, if it is rational and of moderate size.
    fn exact_power(
        &mut self,
        base: &Rational,
        exponent: &Rational,
    ) -> Result<Option<Rational>, Fault> {
        let Some(power) = exponent.numerator().to_i32() else { return Ok(None) };
        let Some(index) = exponent.denominator().filter(|index| *index <= 64) else {
            return Ok(None);
        };
        let bits = base.bits().saturating_mul(power.unsigned_abs().into());
        if power.unsigned_abs() > MAX_EXPONENT || bits > longest(base) {
            return Ok(None);
        }
        self.budget.spend(bits, bits * u64::from(index.min(2)))?;
        let root = if index == 1 { Some(base.clone()) } else { base.root(index) };
        root.map(|root| root.power(power).ok_or(Fault::Undefined)).transpose()
    }

    fn binomial(&mut self, set: &Value, part: &Value) -> Result<Value, Fault> {
        let (Value::Exact(set), Value::Exact(part)) = (set, part) else {
            return Err(Fault::Undefined);
        };
        let part = part.to_i32().filter(|part| *part >= 0).ok_or(Fault::Undefined)?;
        let part = match set.to_i32() {
            Some(set) if set >= part => part.min(set - part),
            _ => part,
        };
        if part > MAX_FACTORIAL {
            return Err(Fault::TooComplex);
        }
        let (mut above, mut below) = (Rational::from(1).into(), Rational::from(1).into());
        for step in 0..i64::from(part) {
            above = self.multiply(above, set.add(&Rational::from(-step)).into())?;
            below = self.multiply(below, Rational::from(step + 1).into())?;
        }
        self.multiply(above, invert(below)?)
    }

    fn factorial(&mut self, argument: &Value) -> Result<Value, Fault> {
        let Value::Exact(number) = argument else { return Err(Fault::Undefined) };
        if !number.is_integer() || number.is_negative() {
            return Err(Fault::Undefined);
        }
        let number = number.to_i32().filter(|number| *number <= MAX_FACTORIAL);
        let mut product = Value::from(Rational::from(1));
        for factor in 1..=i64::from(number.ok_or(Fault::TooComplex)?) {
            product = self.multiply(product, Rational::from(factor).into())?;
        }
        Ok(product)
    }

    fn call(&mut self, function: Function, argument: Value) -> Result<Value, Fault> {
        self.budget.spend(0, 0)?;
        match (function, &argument) {
            (Function::Factorial, _) => return self.factorial(&argument),
            (Function::Absolute, Value::Exact(number)) => {
                return Ok(Value::Exact(number.magnitude()));
            }
            (Function::Floor | Function::Ceiling, _) => return round(function, &argument),
            (Function::NaturalLogarithm, _) => return logarithm(&argument),
            (Function::Logarithm, _) => {
                let ten = logarithm(&Rational::from(10).into())?;
                return self.multiply(logarithm(&argument)?, invert(ten)?);
            }
            _ => {}
        }
        let x = argument.to_complex();
        let value = match function {
            Function::Sine => x.sin(),
            Function::Cosine => x.cos(),
            Function::Tangent => nonzero(x.cos()).map(|cosine| x.sin() / cosine)?,
            Function::Cotangent => nonzero(x.sin()).map(|sine| x.cos() / sine)?,
            Function::Secant => nonzero(x.cos())?.inv(),
            Function::Cosecant => nonzero(x.sin())?.inv(),
            Function::ArcSine => x.asin(),
            Function::ArcCosine => x.acos(),
            Function::ArcTangent => x.atan(),
            Function::HyperbolicSine => x.sinh(),
            Function::HyperbolicCosine => x.cosh(),
            Function::HyperbolicTangent => x.tanh(),
            Function::Exponential => x.exp(),
            Function::Absolute => x.norm().into(),
            Function::NaturalLogarithm
            | Function::Logarithm
            | Function::Floor
            | Function::Ceiling
            | Function::Factorial => return Err(Fault::Undefined),
        };
        finite(value)
    }
}

fn half() -> Rational {
    Rational::from(2).invert().unwrap_or_else(|| Rational::from(0))
}
